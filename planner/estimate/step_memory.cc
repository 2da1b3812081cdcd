#include "planner/estimate/step_memory.h"

#include <algorithm>
#include <cstddef>

#include "planner/cost/memory/host_memory.h"
#include "planner/estimate/estimate.h"

namespace shardwise {

MemoryCosts memory_costs(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout) {
  return {assign_stages(model, layout), layer_memories(model, job, engine, layout),
          with_hosts(memory_rules_on(cluster.gpu, model, job, engine), cluster),
          job.microbatches(layout.dp(), layout.micro_batch_size)};
}

StepMemory step_memory(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                       const Layout& layout, const MemoryCosts& costs) {
  StepMemory step;
  Verdict& v = step.verdict;
  v.usable = Bytes(static_cast<std::int64_t>(static_cast<double>(cluster.gpu.hbm_bytes.value()) *
                                             (1 - job.held_back)));
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const StageParts parts = stage_parts(model, costs.memories, costs.stages[s]);
    const StageContext context = {&costs.rules, &layout, static_cast<std::int32_t>(s),
                                  costs.num_microbatches};
    const StageMemory memory = stage_memory(parts, context);
    const Bytes upper = memory.peak_total() + memory_doubt(memory, parts, context).total();
    if (s == 0 || memory.peak_total() > v.point) {
      v.worst_stage = static_cast<int>(s);
      v.worst_phase = memory.peak_phase();
    }
    const std::int64_t on_host = host_bytes(parts, context);
    v.host = std::max(v.host, Bytes(on_host * costs.rules.ranks_of_host));
    v.join({needed_memory(memory, costs.rules), memory.peak_total(), upper,
            host_lacks(on_host, costs.rules)});
    step.stages.push_back(memory);
    step.upper.push_back(upper);
  }
  v.host_usable = Bytes(costs.rules.host_bytes);
  v.fit = fit_of(v, v.usable);
  return step;
}

}  // namespace shardwise
