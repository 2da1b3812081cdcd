#pragma once

#include <optional>
#include <vector>

#include "planner/score/notes.h"
#include "planner/score/row.h"
#include "planner/score/row_engine.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// A job and layout that a share of a row's layers runs with: rows that offload only some of their
/// layers are predicted as the weighted mean of both cases. Saved activations are sums over layers,
/// so the mean is what the formulas give.
struct RowVariant {
  double share = 1;
  JobSpec job;
  Layout layout;
};

struct RowJob {
  std::vector<RowVariant> variants;  // shares sum to 1
  bool recompute_stated = true;      // false: the first of none, selective and full that fits
};

/// Job of a row, and the choices of `layout` that depend on it: recompute, offload, overlap,
/// gradient precision. Refuses what the planner has no words for.
std::optional<RowJob> job_of(const Row& row, const RowEngine& engine, const Layout& layout,
                             Notes& notes);

}  // namespace shardwise
