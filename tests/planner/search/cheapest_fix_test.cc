#include "planner/search/cheapest_fix.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/cluster_reader.h"

namespace shardwise {
namespace {

// What is promised to fit must fit by the same measure that said the layout did not: machine,
// software and all.
TEST(CheapestFix, NamesALegalLayoutWhoseUpperBoundFits) {
  const ModelSpec model = *load_model("llama-3.1-8b");
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  const EngineProfile engine = *find_engine("fsdp2");
  for (const std::int64_t sequence : {4096, 8192, 16384}) {
    for (const std::int32_t micro_batch : {2, 4}) {
      JobSpec job;
      job.sequence_length = sequence;
      Layout layout;
      layout.zero_stage = 3;
      layout.dp_shard = 8;
      layout.micro_batch_size = micro_batch;
      const StepReport report = estimate(model, cluster, job, engine, layout);
      if (report.verdict.upper <= report.verdict.usable) continue;
      const auto fix = cheapest_fix(model, cluster, job, engine, layout, report.verdict.usable);
      ASSERT_TRUE(fix) << sequence << " x " << micro_batch;
      EXPECT_TRUE(check_layout(model, cluster, job, engine, fix->change.layout).empty());
      EXPECT_LE(evaluate(model, cluster, job, engine, fix->change.layout).upper,
                report.verdict.usable)
          << sequence << " x " << micro_batch << ": " << to_string(*fix);
    }
  }
}

}  // namespace
}  // namespace shardwise
