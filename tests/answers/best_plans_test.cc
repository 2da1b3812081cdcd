#include "answers/best_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {
namespace {

PlanQuestion tiny_llama_on_four_ranks() {
  PlanQuestion q;
  q.model = *load_model("llama-tiny");
  q.clusters = {*with_gpus(*find_cluster("laptop"), 4)};
  q.engines = {find_engine("shardwise")};
  q.executed = true;
  q.job.precision = DType::fp32;
  q.job.global_batch_size = 16;
  q.job.sequence_length = 64;
  q.threads = 2;
  return q;
}

TEST(BestPlans, AreOneOfEachSetOfDegreesAndStageBestFirst) {
  const PlanQuestion q = tiny_llama_on_four_ranks();
  const std::vector<PlanRow> rows = *best_plans(q, 10);
  ASSERT_EQ(rows.size(), 10U);
  EXPECT_EQ(rows.front().candidate.layout, answer(q)->best.front().candidate.layout);
  std::set<std::tuple<int, int, int, int, int>> kinds;
  bool shared = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Layout& layout = rows[i].candidate.layout;
    EXPECT_EQ(rows[i].cluster, q.clusters.data());
    EXPECT_TRUE(
        kinds
            .insert({layout.tp, layout.pp, layout.dp_shard, layout.dp_replicate, layout.zero_stage})
            .second);
    EXPECT_GE(rows[i].step(), rows[std::max<std::size_t>(i, 1) - 1].step());
    shared = shared || layout.tp > 1;
  }
  EXPECT_TRUE(shared);
}

TEST(BestPlans, HaveTheStageThatIsLocked) {
  PlanQuestion q = tiny_llama_on_four_ranks();
  q.locks = {{"zero_stage", "1"}};
  const std::vector<PlanRow> rows = *best_plans(q, 10);
  EXPECT_FALSE(rows.empty());
  for (const PlanRow& row : rows) EXPECT_EQ(row.candidate.layout.zero_stage, 1);
}

}  // namespace
}  // namespace shardwise::sim
