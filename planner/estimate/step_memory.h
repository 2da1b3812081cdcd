#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/schedule/stages.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// The memory of a step, stage by stage.
struct StepMemory {
  std::vector<StageMemory> stages;
  std::vector<Bytes> upper;  // by stage: its upper bound
  Verdict verdict;           // without a fix
};

/// Costs from which the memory of a layout is summed.
struct MemoryCosts {
  std::vector<StageLayers> stages;
  std::vector<LayerMemory> memories;  // by kind
  MemoryRules rules;
  std::int64_t num_microbatches = 1;
};

/// \pre check_layout has no diagnostics; model and job outlive the result
MemoryCosts memory_costs(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout);

/// Memory as estimate() has it, without any times. \pre costs are those of the layout
StepMemory step_memory(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                       const Layout& layout, const MemoryCosts& costs);

}  // namespace shardwise
