#pragma once

#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/cost/step/step_time.h"
#include "planner/engines/engines.h"
#include "planner/schedule/stages.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::test {

/// A job whose step is priced part by part, with every choice open to the test.
struct Priced {
  ModelSpec model = llama_3_1_8b();
  ClusterSpec cluster = *find_cluster("dgx-h100");
  JobSpec job;
  EngineProfile engine = megatron_ddp();
  Layout layout;
  mutable std::vector<LayerMemory> memories;  // of what stages() made last

  /// Makes as many GPUs as the layout has ranks, and as many micro-batches as asked for.
  void size(std::int64_t num_microbatches) {
    cluster = *with_gpus(cluster, layout.world());
    job.global_batch_size = layout.dp() * layout.micro_batch_size * num_microbatches;
  }
  std::int64_t num_microbatches() const {
    return job.batch_for(layout.dp(), layout.micro_batch_size) /
           (layout.dp() * layout.micro_batch_size);
  }

  StageTimes stages() const {
    const auto times = layer_times(model, job, engine, cluster, layout);
    memories = layer_memories(model, job, engine, layout);
    const TimeRules rules = time_rules(job, engine, cluster);
    return stage_times(model, job, rules, layout, times, memories, assign_stages(model, layout),
                       num_microbatches());
  }
  TimeParts step(StepDetail* detail = nullptr) const {
    const TimeRules rules = time_rules(job, engine, cluster);
    CollectiveTables tables(cluster);
    const DataParallelTables groups =
        data_parallel_tables(tables, cluster, layout,
                             {model.num_experts > 0, job.reduce_scatter_with_fp32_accumulation});
    return step_time(stages(), {&rules, &layout, &groups, num_microbatches()}, detail);
  }
  StepDetail detail() const {
    StepDetail found;
    step(&found);
    return found;
  }
  const LayerSpec& kind(const std::string& name) const {
    for (const LayerSpec& layer : model.kinds) {
      if (layer.name == name) return layer;
    }
    return model.kinds.front();
  }
  LayerTime layer(const std::string& name) const {
    return layer_time(model, kind(name), job, engine, cluster, layout);
  }
};

}  // namespace shardwise::test
