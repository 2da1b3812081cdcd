#include "planner/cost/stages.h"

#include <gtest/gtest.h>

#include "tests/support/models.h"

namespace shardwise {
namespace {

std::vector<int> blocks_of(const Layout& layout, std::int64_t layers = 32) {
  std::vector<int> blocks;
  for (const StageLayers& stage : assign_stages(test::llama(layers, 64, 128, 4, 2, 256), layout)) {
    blocks.push_back(stage.blocks);
  }
  return blocks;
}

TEST(Stages, SpreadBlocksEvenly) { EXPECT_EQ(blocks_of({.pp = 4}), (std::vector{8, 8, 8, 8})); }

TEST(Stages, GiveTheRemainderToTheMiddle) {
  EXPECT_EQ(blocks_of({.pp = 4}, 30), (std::vector{7, 8, 8, 7}));
}

TEST(Stages, KeepTheFirstAndLastAsAsked) {
  EXPECT_EQ(blocks_of({.pp = 4, .first_stage_layers = 6, .last_stage_layers = 4}),
            (std::vector{6, 11, 11, 4}));
}

TEST(Stages, PutEmbeddingFirstAndHeadLast) {
  const auto stages = assign_stages(test::llama_3_1_8b(), {.pp = 4});
  EXPECT_TRUE(stages.front().has_embedding);
  EXPECT_FALSE(stages.front().has_head);
  EXPECT_TRUE(stages.back().has_head);
  EXPECT_FALSE(stages.back().copies_embedding);
}

// Llama-3.1-405B has 126 blocks so that embedding and head can count as one each.
TEST(Stages, LeaveTheEndsToEmbeddingAndHeadWhenBlocksAreTwoShort) {
  const auto stages = assign_stages(test::llama(126, 64, 128, 4, 2, 256), {.pp = 16, .vpp = 8});
  EXPECT_EQ(stages.front().blocks, 7);
  EXPECT_EQ(stages.front().runs.front().chunk, 0);  // the embedding
  EXPECT_EQ(stages.front().runs[1].chunk, 1);
  EXPECT_EQ(stages[7].blocks, 8);
  EXPECT_EQ(stages.back().blocks, 7);
  EXPECT_TRUE(stages.back().has_head);
  EXPECT_EQ(stages.back().runs.back().chunk, 7);
}

TEST(Stages, CopyATiedEmbeddingToTheLast) {
  ModelSpec model = test::llama_3_1_8b();
  model.tie_word_embeddings = true;
  const auto stages = assign_stages(model, {.pp = 2});
  EXPECT_FALSE(stages.front().copies_embedding);
  EXPECT_TRUE(stages.back().copies_embedding);
  EXPECT_FALSE(assign_stages(model, {.pp = 1}).front().copies_embedding);
}

// Korthikanti et al., arXiv:2205.05198, section 4.2.3: the first stage holds (1 + (p-1)/(pm)) p
// micro-batches with m chunks.
TEST(MicroBatchesInFlight, MatchKorthikantiInterleaving) {
  for (const int pp : {2, 4, 8}) {
    for (const int vpp : {2, 3, 5}) {
      const InFlight flight = micro_batches_in_flight({.pp = pp, .vpp = vpp}, 0, 1000);
      EXPECT_DOUBLE_EQ(static_cast<double>(flight.held) / static_cast<double>(flight.chunks),
                       pp * (1 + (pp - 1.0) / (pp * vpp)));
    }
  }
}

TEST(MicroBatchesInFlight, AreNeverMoreThanThereAre) {
  for (const auto schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1,
        PipelineSchedule::zb_h2, PipelineSchedule::zb_v, PipelineSchedule::dualpipe}) {
    const InFlight flight = micro_batches_in_flight({.pp = 8, .schedule = schedule}, 0, 3);
    EXPECT_LE(flight.held, 3 * flight.chunks);
  }
}

}  // namespace
}  // namespace shardwise
