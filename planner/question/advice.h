#pragma once

#include <functional>
#include <string>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Changes that make a layout fit that does not.
struct Advice {
  std::string text;  // "--tp=8: 61.2 GiB, 1.32 s a step"; empty where nothing makes it fit
  Layout layout;     // after the change
};

/// The cheapest single change of a layout after which it fits, else two or three changes, the one
/// that saves most memory first, else the fewest GPUs of the cluster on which a layout of the
/// engine fits ("--gpus 240, then --tp=8 --pp=2: …").
///
/// \param usable   memory that the layout may use
/// \param is_open  layouts that may be proposed; empty: everything legal
Advice advice(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
              const EngineProfile& engine, const Layout& layout, Bytes usable,
              const std::function<bool(const Layout&)>& is_open = {});

/// A report whose verdict has it. Before more GPUs it proposes bitsandbytes' paged AdamW where the
/// engine takes it ("--adamw paged: …"), with changes of the layout if need be.
StepReport with_advice(StepReport report, const ModelSpec& model, const ClusterSpec& cluster,
                       const JobSpec& job, const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
