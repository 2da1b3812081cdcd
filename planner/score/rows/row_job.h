#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_engine.h"
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

/// Matrices that a row says have adapters, as PEFT names them; empty where it does not.
std::vector<std::string> named_adapters(const Row& row);

/// Job of a row, and the choices of `layout` that depend on it: recompute, offload, overlap,
/// gradient precision. Refuses what the planner has no words for.
std::optional<RowJob> job_of(const Row& row, const RowEngine& engine, const Layout& layout,
                             Notes& notes);

}  // namespace shardwise
