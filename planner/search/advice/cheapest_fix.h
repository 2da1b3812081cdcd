#pragma once

#include <functional>
#include <optional>
#include <string>

#include "planner/estimate/estimate.h"
#include "planner/search/advice/single_changes.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

struct Fix {
  LayoutChange change;
  Evaluation cost;
};

/// Cheapest of the single changes after which it fits `usable`: the one with the least step time a
/// sequence; nothing when none is enough. A layout that fits is no question.
/// \param is_open  what may be proposed; empty: everything legal
std::optional<Fix> cheapest_fix(const ModelSpec& model, const ClusterSpec& cluster,
                                const JobSpec& job, const EngineProfile& engine,
                                const Layout& layout, Bytes usable,
                                const std::function<bool(const Layout&)>& is_open = {});

/// "--recompute=full: 61.2 GiB, 1.32 s a step".
std::string to_string(const Fix& fix);

}  // namespace shardwise
