#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "planner/cost/step/overlap_loss.h"
#include "planner/cost/step/pass_streams.h"
#include "planner/cost/step/pipeline_data.h"
#include "planner/schedule/pipeline_sweep.h"
#include "tests/planner/cost/step/time_fixture.h"
#include "tests/planner/schedule/unrolled.h"

namespace shardwise::test {
namespace {

struct Ends {
  PipelineRun run;
  double last = 0;  // operation
};
Ends swept(const StageTimes& stages, const LeafContext& context) {
  const PipelineSlots& slots = *stages.pipeline.slots;
  std::vector<double> end;
  Ends ends;
  PassStreams passes(stages, context, pass_losses(stage_kernels(stages).slowest, context));
  ends.run = sweep_pipeline(slots, passes, Seconds(0), end);
  ends.last = passes.end().value();
  return ends;
}

struct OneStageCase {
  std::string engine;
  std::int8_t zero = 3;
  bool every = true;
  bool offloads = false;
  double host_gb_per_s = 25;
};

// As soon as each micro-batch takes what the one before took, those left out take no other time.
TEST(OneStage, TakesAsLongAsEachOfItsMicrobatchesOneByOne) {
  const std::vector<OneStageCase> cases = {
      {"fsdp2"},
      {"fsdp2", 3, false},
      {"fsdp2", 3, true, true, 8},
      {"fsdp1"},
      {"megatron_fsdp"},
      {"megatron_fsdp", 2},
      {"megatron_fsdp", 3, true, true, 60},
      {"deepspeed", 3},
      {"internevo", 3},
      {"shardwise"},
      {"shardwise", 3, false},
      {"shardwise", 2},
      {"megatron_ddp", 1, false, true, 4},
      {"megatron_ddp", 1, false, true, 60},
  };
  int skipped = 0;
  for (const OneStageCase& c : cases) {
    for (const std::int64_t microbatches : {1, 2, 3, 8, 40}) {
      for (const double links : {0.03, 1.0}) {
        Priced p;
        p.engine = *find_engine(c.engine);
        p.layout.dp_shard = 16;
        p.layout.zero_stage = c.zero;
        p.layout.reduce_every_microbatch = c.every;
        p.layout.offload_activations = c.offloads;
        p.size(microbatches);
        p.cluster.host_link = BytesPerSecond(c.host_gb_per_s * 1e9);
        for (LinkTier& tier : p.cluster.tiers) tier.bandwidth = tier.bandwidth * links;
        const TimeRules rules = time_rules(p.job, p.engine, p.cluster);
        CollectiveTables tables(p.cluster);
        const DataParallelTables groups =
            data_parallel_tables(tables, p.cluster, p.layout, {false, false});
        const LeafContext context = {&rules, &p.layout, &groups, p.num_microbatches()};
        ASSERT_TRUE(streams_beside_passes(context)) << c.engine;
        StageTimes stages = p.stages();
        const Ends some = swept(stages, context);
        stages.pipeline.slots =
            std::make_shared<const PipelineSlots>(unrolled(*stages.pipeline.slots));
        const Ends all = swept(stages, context);
        const std::string named = c.engine + " " + std::to_string(microbatches);
        const double near = 1e-12 * all.last;
        EXPECT_NEAR(some.last, all.last, near) << named;
        EXPECT_NEAR(some.run.length.value(), all.run.length.value(), near) << named;
        for (std::size_t i = 0; i < all.run.spans.size(); ++i) {
          EXPECT_NEAR(some.run.spans[i].begin.value(), all.run.spans[i].begin.value(), near);
          EXPECT_NEAR(some.run.spans[i].end.value(), all.run.spans[i].end.value(), near) << named;
        }
        skipped += some.run.swept < all.run.swept ? 1 : 0;
      }
    }
  }
  EXPECT_GT(skipped, 20);
}

constexpr KernelShares kHalf = {.products = 0.5, .rest = 0.4};
constexpr OverlapTax kWithin = {.gemm = 0.5, .other = 0.2};
constexpr OverlapTax kAcross = {.gemm = 0.5, .other = 0.1};

// 0.5 x 0.5 of products and 0.4 x 0.2 of the rest for 2 s: 0.5 + 0.16.
TEST(OverlapLoss, IsAShareOfWhatRunsBeside) {
  const OverlapLoss loss(kHalf, kWithin, kAcross);
  EXPECT_NEAR(loss.to(2, 0), 0.66, 1e-12);
  EXPECT_NEAR(loss.to(0, 2), 0.5 + 0.08, 1e-12);
  EXPECT_NEAR(loss.slowed(10, 2, 0), 10.66, 1e-12);
  EXPECT_NEAR(loss.slowed(10, 0, 0), 10, 1e-12);
}

// 3 s and 2 s beside 10: both at once for 0.6 s, so that products meet one or both for 4.4 s:
// 0.25 x 4.4 + 0.4 (0.2 x 3 + 0.1 x 2).
TEST(OverlapLoss, CountsASecondWaveOfProductsOnceWhereBothRun) {
  const OverlapLoss loss(kHalf, kWithin, kAcross);
  EXPECT_NEAR(loss.slowed(10, 3, 2), 10 + 1.1 + 0.32, 1e-12);
}

// Beside collectives that never end it runs at 1 - 0.25 - 0.08, or with both at 0.04 less.
TEST(OverlapLoss, LastsNoLongerThanCompute) {
  const OverlapLoss loss(kHalf, kWithin, kAcross);
  EXPECT_NEAR(loss.slowed(10, 1000, 0), 10 / 0.67, 1e-12);
  EXPECT_NEAR(loss.slowed(10, 1000, 1000), 10 / 0.63, 1e-12);
}

}  // namespace
}  // namespace shardwise::test
