#include "planner/lowering/data_parallel/buckets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

constexpr std::int64_t kLimit = 1'000'000;
constexpr std::int64_t kTokenTable = 32'000 * 512;  // and head, each more than a bucket

std::vector<std::int64_t> elements_of_buckets(const char* engine) {
  Layout layout;
  layout.dp_shard = 2;
  layout.zero_stage = 1;
  Plan plan = small_plan(*find_engine(engine), layout, 1);
  plan.engine.bucket_elements = kLimit;
  plan.engine.bucket_elements_per_rank = 0;
  std::vector<std::int64_t> elements;
  for (const Bucket& each : buckets_of(lowering_context(plan, Granularity::layer, false), 0)) {
    elements.push_back(each.elements);
  }
  std::int64_t all = 0;
  for (const int kind : plan.model.layers) {
    all += plan.model.kinds[static_cast<std::size_t>(kind)].parameter_count();
  }
  EXPECT_EQ(std::accumulate(elements.begin(), elements.end(), std::int64_t{0}), all) << engine;
  return elements;
}

TEST(Buckets, OfMegatronEndWithTheTensorThatFillsThem) {
  std::vector<std::int64_t> elements = elements_of_buckets("megatron_ddp");
  elements.pop_back();
  for (const std::int64_t each : elements) EXPECT_GE(each, kLimit);
}

// pytorch/pytorch@v2.15.0:torch/csrc/distributed/c10d/reducer.cpp, rebuild_buckets.
TEST(Buckets, OfDistributedDataParallelAreOneInTheFirstStepAndBeginWithASmallOneLater) {
  Layout layout;
  layout.dp_shard = 2;
  Plan plan = small_plan(*find_engine("pytorch_ddp"), layout, 1);
  plan.engine.bucket_elements = kTokenTable + kLimit;
  const auto elements = [&](bool first_step) {
    std::vector<std::int64_t> each;
    for (const Bucket& bucket :
         buckets_of(lowering_context(plan, Granularity::layer, first_step), 0)) {
      each.push_back(bucket.elements);
    }
    return each;
  };
  const std::vector<std::int64_t> later = elements(false);
  ASSERT_GT(later.size(), 1U);
  EXPECT_EQ(later.front(), kTokenTable);  // full with the head, and smaller than others
  EXPECT_EQ(elements(true),
            std::vector{std::accumulate(later.begin(), later.end(), std::int64_t{0})});
}

TEST(Buckets, OfDeepSpeedAndInternEvoEndBeforeTheTensorThatDoesNotFit) {
  for (const char* engine : {"deepspeed", "internevo"}) {
    for (const std::int64_t each : elements_of_buckets(engine)) {
      EXPECT_TRUE(each <= kLimit || each == kTokenTable) << engine << " " << each;
    }
  }
}

// InternLM/InternEvo@c628a8c8:internlm/solver/optimizer/utils.py, reduce_tensor without a dst_rank.
TEST(Buckets, OfInternEvosFirstStageAreAllReduced) {
  const auto kinds = [](const char* engine, int zero_stage) {
    Layout layout;
    layout.dp_shard = 8;
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    const StageProgram stage = lower(small_plan(*find_engine(engine), layout, 1)).stages[0];
    std::set<CollectiveKind> all;
    for (const ProgramOp& op : stage.operations) {
      if (op.role != OpRole::reduce) continue;
      all.insert(stage.costs[static_cast<std::size_t>(op.cost)].collectives[0].kind);
    }
    return all;
  };
  EXPECT_EQ(kinds("internevo", 1), std::set{CollectiveKind::all_reduce});
  EXPECT_EQ(kinds("internevo", 3), std::set{CollectiveKind::reduce_scatter});
  EXPECT_EQ(kinds("megatron_ddp", 1), std::set{CollectiveKind::reduce_scatter});
}

TEST(Buckets, OfFlatGradientsAreCutWhereverTheLimitFalls) {
  std::vector<std::int64_t> elements = elements_of_buckets("megatron_deepspeed");
  EXPECT_LE(elements.back(), kLimit);
  elements.pop_back();
  for (const std::int64_t each : elements) EXPECT_EQ(each, kLimit);
}

}  // namespace
}  // namespace shardwise::test
