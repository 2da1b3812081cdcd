#include "planner/search/advice/cheapest_fix.h"

#include <gtest/gtest.h>

#include <optional>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

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

TEST(CheapestFix, FindsTheFastestSingleChangeThatFits) {
  const ModelSpec model = *load_model("llama-3.1-8b");
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  const EngineProfile& engine = *find_engine("megatron_ddp");
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 1;
  layout.micro_batch_size = 2;
  JobSpec job;
  job.global_batch_size = 32;
  job.sequence_length = 8192;
  const Bytes usable = usable_memory(cluster, job, Bytes(0));
  const Evaluation now = evaluate(model, cluster, job, engine, layout);
  ASSERT_GT(now.upper, usable) << "the layout was meant not to fit";

  const std::optional<Fix> fix = cheapest_fix(model, cluster, job, engine, layout, usable);
  ASSERT_TRUE(fix.has_value());
  EXPECT_LE(fix->cost.upper, usable);
  std::size_t fitting = 0;
  for (const LayoutChange& each : single_changes(model, cluster, job, engine, layout)) {
    EXPECT_TRUE(check_layout(model, cluster, job, engine, each.layout).empty()) << each.text;
    EXPECT_EQ(each.layout.world(), 8) << each.text;
    const Evaluation cost = evaluate(model, cluster, job, engine, each.layout);
    if (cost.upper > usable) continue;
    ++fitting;
    EXPECT_GE(cost.step_time, fix->cost.step_time) << each.text;
  }
  EXPECT_GT(fitting, 1U) << "there was no choice";
}

// Two bytes of the 16 of each parameter are what it lacks; gradients are of 16 bits already.
TEST(CheapestFix, OffersRemaindersOfMainWeightsWhereThatIsEnough) {
  const ModelSpec model = *load_model("llama-3.1-8b");
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  const EngineProfile& engine = *find_engine("shardwise");
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 3;
  layout.fp32_gradients = false;
  JobSpec job;
  job.global_batch_size = 8;
  const Evaluation now = evaluate(model, cluster, job, engine, layout);
  const Bytes usable = now.upper - Bytes(model.parameter_count() * 2 / 8 - (16 << 20));
  const std::optional<Fix> fix = cheapest_fix(model, cluster, job, engine, layout, usable);
  ASSERT_TRUE(fix.has_value());
  EXPECT_EQ(fix->change.text, "--store-param-remainders=true");
  EXPECT_LE(fix->cost.step_time, now.step_time);
}

}  // namespace
}  // namespace shardwise
