#pragma once

#include <string>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// What makes a layout fit that does not: the cheapest single change of it ("--tp=8: 61.2 GiB,
/// 1.32 s a step"), else two or three, the one that saves most memory first, else the fewest GPUs
/// of the cluster on which a layout of the engine fits ("--gpus 240, then --tp=8 --pp=2: …"); empty
/// where nothing does.
/// \param usable  memory that the layout may use
std::string advice(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                   const EngineProfile& engine, const Layout& layout, Bytes usable);

/// A report whose verdict has it.
StepReport with_advice(StepReport report, const ModelSpec& model, const ClusterSpec& cluster,
                       const JobSpec& job, const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
