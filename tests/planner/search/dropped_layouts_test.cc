#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

struct ReachedJob {
  ModelSpec model;
  ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 4);
  JobSpec job;
  explicit ReachedJob(const EngineProfile& engine)
      : model(*load_model(engine.tied_head ? "gpt2" : "pythia-1.4b")) {
    job.global_batch_size = 8;
    job.sequence_length = 1024;
  }
};

/// Every layout that the engine can run, those that rules call the same as another among them: all
/// values of the fields that states depend on.
std::vector<Candidate> runnable(const ReachedJob& job, const EngineProfile& engine) {
  std::vector<Candidate> all;
  const auto gpus = static_cast<std::int32_t>(job.cluster.gpus);
  Layout layout;
  const auto with_states = [&] {
    for (const int stage : engine.zero_stages) {
      layout.zero_stage = static_cast<std::int8_t>(stage);
      for (int bits = 0; bits < 32; ++bits) {
        layout.outer_shards_optimizer = (bits & 1) != 0;
        layout.reshard_after_forward = (bits & 2) != 0 ? 1 : 0;
        layout.reduce_every_microbatch = (bits & 4) != 0;
        layout.fp32_gradients = (bits & 8) != 0;
        layout.double_buffer = (bits & 16) != 0;
        if (!check_layout(job.model, job.cluster, job.job, engine, layout).empty()) continue;
        all.push_back({0, layout, evaluate(job.model, job.cluster, job.job, engine, layout), 0});
      }
    }
  };
  for (layout.cp = 1; layout.cp <= gpus; layout.cp *= 2) {
    for (layout.pp = 1; layout.cp * layout.pp <= gpus; layout.pp *= 2) {
      const std::int32_t dp = gpus / layout.cp / layout.pp;
      for (layout.dp_shard = 1; layout.dp_shard <= dp; layout.dp_shard *= 2) {
        layout.dp_replicate = dp / layout.dp_shard;
        with_states();
      }
    }
  }
  return all;
}

// A layout that a rule calls the same as another is no better than the front without it. ZeRO-3
// with optimizer states over replicas shards although each replica is one rank (F3).
TEST(Search, DropsNothingThatWouldBeOnTheFront) {
  for (const std::string& name : engine_names()) {
    SCOPED_TRACE(name);
    const ReachedJob job(*find_engine(name));
    SearchRequest request;
    request.model = &job.model;
    request.cluster = &job.cluster;
    request.job = &job.job;
    request.engines = {find_engine(name)};
    request.threads = 1;
    request.breadth = Breadth::full;
    request.locks = {{"micro_batch_size", "1"},
                     {"tp", "1"},
                     {"vpp", "1"},
                     {"schedule", "one_f_one_b"},
                     {"recompute", "none"},
                     {"cp_kind", "ring"},
                     {"sequence_parallel", "false"},
                     {"offload_optimizer", "false"},
                     {"offload_activations", "false"},
                     {"order", "tp-cp-ep-dp_shard-dp_replicate-pp"}};
    const SearchResult result = *search(request);
    ASSERT_FALSE(result.front.empty());
    for (const Candidate& each : runnable(job, *find_engine(name))) {
      const bool reached = std::ranges::any_of(result.front, [&](const Candidate& known) {
        return known.cost.point <= each.cost.point &&
               known.cost.step_time <= each.cost.step_time * (1 + 1e-12);
      });
      EXPECT_TRUE(reached) << "cp " << each.layout.cp << " pp " << each.layout.pp << " dp "
                           << each.layout.dp_shard << " x " << each.layout.dp_replicate << " zero "
                           << int{each.layout.zero_stage} << " outer "
                           << each.layout.outer_shards_optimizer << " reshard "
                           << each.layout.reshard_after_forward << " reduce "
                           << each.layout.reduce_every_microbatch << " fp32 "
                           << each.layout.fp32_gradients << " double " << each.layout.double_buffer;
    }
  }
}

}  // namespace
}  // namespace shardwise
