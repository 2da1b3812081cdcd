#include "planner/schedule/stages.h"

#include <gtest/gtest.h>

#include "planner/schedule/held_passes.h"
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

std::int64_t held(PipelineSchedule schedule, int stage, int pp = 8) {
  return micro_batches_in_flight({.pp = pp, .schedule = schedule}, stage, 1000).held;
}

// Qi et al., arXiv:2401.10241: section 2.1, every stage of ZB-H1 has as many micro-batches in
// flight as the first of 1F1B; section 2.2, ZB-H2 has 2 p - 1; section 6, ZB-V has p on each, of
// two half stages.
TEST(MicroBatchesInFlight, MatchTheZeroBubblePaper) {
  for (const int stage : {0, 3, 7}) {
    EXPECT_EQ(held(PipelineSchedule::zb_h1, stage), 8);
    EXPECT_EQ(held(PipelineSchedule::zb_h2, stage), 15);
    EXPECT_EQ(held(PipelineSchedule::zb_v, stage), 16);
  }
  EXPECT_EQ(held(PipelineSchedule::one_f_one_b, 0), 8);
  EXPECT_EQ(held(PipelineSchedule::one_f_one_b, 7), 1);
  EXPECT_EQ(micro_batches_in_flight({.pp = 8, .schedule = PipelineSchedule::zb_v}, 0, 9).chunks, 2);
}

// DeepSeek-V3, arXiv:2412.19437, table 2, and deepseek-ai/DualPipe:README.md: PP + 1 activations of
// a stage and twice its parameters; DualPipeV has PP / 2 ranks with two stages each.
TEST(MicroBatchesInFlight, MatchTheTableOfDualPipe) {
  for (const int stage : {0, 3, 7}) {
    EXPECT_EQ(held(PipelineSchedule::dualpipe, stage), 8 + 1);
    EXPECT_EQ(held(PipelineSchedule::dualpipe_v, stage, 4), 8 + 1);
  }
  const Layout v = {.pp = 4, .schedule = PipelineSchedule::dualpipe_v};
  EXPECT_EQ(micro_batches_in_flight(v, 0, 1000).chunks, 2);
  // 32 blocks on 4 stages: 8 each, and twice as many when every part of the model is there twice.
  const auto blocks = [](PipelineSchedule schedule) {
    return assign_stages(test::llama_3_1_8b(), {.pp = 4, .schedule = schedule})[1].blocks;
  };
  EXPECT_EQ(blocks(PipelineSchedule::dualpipe), 16);
  EXPECT_EQ(blocks(PipelineSchedule::dualpipe_v), 8);
  EXPECT_EQ(blocks(PipelineSchedule::zb_v), 8);
  const auto ends =
      assign_stages(test::llama_3_1_8b(), {.pp = 4, .schedule = PipelineSchedule::dualpipe});
  for (const std::size_t stage : {0U, 3U}) {
    EXPECT_TRUE(ends[stage].has_embedding);
    EXPECT_TRUE(ends[stage].has_head);
  }
}

TEST(MicroBatchesInFlight, AreNeverMoreThanThereAre) {
  for (const auto schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1,
        PipelineSchedule::zb_h2, PipelineSchedule::looped_bfs}) {
    const InFlight flight = micro_batches_in_flight({.pp = 8, .schedule = schedule}, 0, 3);
    EXPECT_LE(flight.held, 3 * flight.chunks);
  }
}

}  // namespace
}  // namespace shardwise
