#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/manifest.h"
#include "planner/engines/engines.h"
#include "planner/spec/text/error.h"
#include "tests/executor/checkpoint/checkpoint_run.h"
#include "tests/executor/support/guarded_device.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;

/// Each plan trains a step further than the one before it, from its checkpoint. \returns all losses
std::vector<double> relay(const std::vector<Plan>& plans) {
  const Scratch scratch(shardwise::test::memory_folder());
  std::vector<double> losses;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    const std::vector<double> one = train_from(plans[i], scratch.folder(), step, step + 1, 1);
    losses.insert(losses.end(), one.begin(), one.end());
  }
  return losses;
}

// Where the uninterrupted curves of all of them are the same bits, so is that of a run that changes
// from one to the next after every step: nothing of the state is left out or put elsewhere.
TEST(Checkpoint, GoesOnWithTheSameBitsUnderEveryStageEngineAndNumberOfRanks) {
  for (const bool tied : {false, true}) {
    std::vector<Plan> plans;
    for (const int zero_stage : {3, 0, 2, 1}) {
      plans.push_back(laptop_plan("shardwise", layout_of(zero_stage, 4), 1, tied));
    }
    plans.push_back(laptop_plan("shardwise", layout_of(0, 1), 4, tied));
    plans.push_back(laptop_plan("megatron_ddp", layout_of(1, 4), 1, tied));
    plans.push_back(laptop_plan("shardwise", layout_of(3, 2), 2, tied));
    plans.push_back(laptop_plan("megatron_fsdp", layout_of(3, 4), 1, tied));
    plans.push_back(laptop_plan("fsdp2", layout_of(3, 4), 1, tied));
    plans.push_back(laptop_plan("fsdp1", layout_of(3, 4), 1, tied));
    plans.push_back(laptop_plan("megatron_ddp", layout_of(0, 4), 1, tied));
    plans.push_back(laptop_plan("shardwise", layout_of(3, 1), 4, tied));
    const Curve whole = train(plans.front(), std::ssize(plans));
    EXPECT_EQ(relay(plans), whole.losses);
  }
}

TEST(Checkpoint, GoesOnWithTheSameBitsOverReplicas) {
  std::vector<Plan> plans;
  for (const int zero_stage : {3, 0, 1}) {
    plans.push_back(laptop_plan("shardwise", layout_of(zero_stage, 2, 2), 1, true));
  }
  plans.push_back(laptop_plan("fsdp2", layout_of(3, 2, 2), 1, true));
  // HFSDP: replicas share what the optimizer keeps.
  Layout hfsdp = layout_of(3, 2, 2);
  hfsdp.outer_shards_optimizer = true;
  plans.push_back(laptop_plan("megatron_fsdp", hfsdp, 1, true));
  plans.push_back(laptop_plan("shardwise", layout_of(0, 2, 2), 1, true));
  plans.push_back(laptop_plan("shardwise", hfsdp, 1, true));
  plans.push_back(laptop_plan("shardwise", layout_of(2, 2, 2), 1, true));
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

// The fp32 weights that the optimizer updates are kept, from which those of bf16 are rounded again.
TEST(Checkpoint, GoesOnWithTheSameBitsInBf16) {
  Plan both = laptop_plan("megatron_fsdp", layout_of(3, 2, 2), 1, false);
  both.layout.outer_shards_optimizer = true;
  both.job.precision = DType::bf16;
  EXPECT_EQ(relay({both, both, both}), train(both, 3).losses);
  for (const char* engine : {"shardwise", "megatron_ddp", "fsdp2"}) {
    for (const int zero_stage : find_engine(engine)->zero_stages) {
      Plan plan = laptop_plan(engine, layout_of(zero_stage, 2), 1, false);
      plan.job.precision = DType::bf16;
      EXPECT_EQ(relay({plan, plan, plan}), train(plan, 3).losses)
          << engine << " ZeRO-" << zero_stage;
    }
  }
}

// Files have fp32 main weights and moments whichever way a run keeps them.
TEST(Checkpoint, GoesOnWithTheSameBitsWithAndWithoutRemaindersOfMainWeights) {
  std::vector<Plan> plans;
  for (const int zero_stage : {0, 3, 1, 2, 3, 0}) {
    Plan plan = laptop_plan("shardwise", layout_of(zero_stage, 4), 1, true);
    plan.job.precision = DType::bf16;
    plan.layout.store_param_remainders = plans.size() % 3 != 0;
    plans.push_back(plan);
  }
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

// A step draws by its number and the run's seed, and a bf16 weight is the same number in fp32.
TEST(Checkpoint, GoesOnWithTheSameBitsWhereBf16WeightsAreRoundedByChance) {
  std::vector<Plan> plans;
  for (const int zero_stage : {3, 0, 1, 2, 3}) {
    Plan plan = laptop_plan("shardwise", layout_of(zero_stage, 4), 1, true);
    plan.job.precision = plan.job.main_dtype = DType::bf16;
    plans.push_back(plan);
  }
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

/// Six blocks in `pp` stages.
Plan stages(std::int32_t pp, Layout layout, std::int64_t num_microbatches,
            PipelineSchedule schedule = PipelineSchedule::one_f_one_b, std::int32_t vpp = 1) {
  layout.pp = pp;
  layout.vpp = vpp;
  layout.schedule = schedule;
  return deep_plan(layout, num_microbatches);
}

// Thirteen changes of stages, chunks, schedule, ranks of data parallelism and ZeRO stage.
TEST(Checkpoint, GoesOnWithTheSameBitsOverOtherStages) {
  const std::vector<Plan> plans = {stages(1, layout_of(3, 4), 1),
                                   stages(2, layout_of(3, 2), 2),
                                   stages(3, layout_of(0, 1), 4, PipelineSchedule::gpipe),
                                   stages(2, layout_of(0, 1), 4, PipelineSchedule::one_f_one_b, 3),
                                   stages(2, layout_of(2, 2), 2, PipelineSchedule::gpipe),
                                   stages(1, layout_of(0, 1), 4),
                                   stages(2, layout_of(3, 1), 4, PipelineSchedule::looped_bfs, 3),
                                   stages(4, layout_of(0, 1), 4),
                                   stages(2, layout_of(1, 4), 1),
                                   stages(2, layout_of(0, 4), 1),
                                   stages(3, layout_of(3, 2), 2),
                                   stages(1, layout_of(2, 2), 2),
                                   stages(2, layout_of(2, 2), 2, PipelineSchedule::one_f_one_b, 3),
                                   stages(3, layout_of(3, 2), 2, PipelineSchedule::gpipe)};
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

TEST(Checkpoint, GoesOnWithTheSameBitsOverOtherStagesOfReplicas) {
  Layout hfsdp = layout_of(3, 2, 2);
  hfsdp.outer_shards_optimizer = true;
  const std::vector<Plan> plans = {stages(2, layout_of(3, 2, 2), 1), stages(1, hfsdp, 1),
                                   stages(2, hfsdp, 1), stages(1, layout_of(1, 2, 2), 1),
                                   stages(2, layout_of(0, 2, 2), 1)};
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

// The first stage alone writes a table that the last one has too, and both read it.
TEST(Checkpoint, HasATableOfTwoStagesOnce) {
  const Scratch scratch(shardwise::test::memory_folder());
  Layout layout;
  layout.pp = 3;
  const Plan plan = deep_plan(layout, 4, true);
  EXPECT_EQ(relay({plan, plan, plan}), train(plan, 3).losses);
  std::vector<Plan> shards;
  for (const int zero_stage : {0, 3, 1, 2}) {
    Layout two = layout_of(zero_stage, 2);
    two.pp = 3;
    shards.push_back(deep_plan(two, 1, true));
  }
  EXPECT_EQ(relay(shards), train(shards.front(), 4).losses);
  train_from(plan, scratch.folder(), 0, 1);
  const Result<Manifest> manifest = read_manifest(scratch.folder() / complete_name(1));
  ASSERT_TRUE(manifest) << to_string(manifest.problems());
  ASSERT_EQ(manifest->files.size(), 3U);
  const auto has_table = [](const SavedFile& file) {
    return std::ranges::find(file.slices, "model.embed_tokens.weight", &SavedSlice::tensor) !=
           file.slices.end();
  };
  EXPECT_TRUE(has_table(manifest->files[0]));
  EXPECT_FALSE(has_table(manifest->files[1]));
  EXPECT_FALSE(has_table(manifest->files[2]));
}

TEST(Checkpoint, GoesOnWithTheSameBitsOverOtherStagesInBf16) {
  std::vector<Plan> plans;
  for (const std::int32_t pp : {2, 1, 3}) {
    Plan plan = stages(pp, layout_of(0, 1), 4);
    plan.job.precision = DType::bf16;
    plan.layout.store_param_remainders = pp == 2;
    plans.push_back(plan);
  }
  EXPECT_EQ(relay(plans), train(plans.front(), std::ssize(plans)).losses);
}

// Steps, checkpoints and what goes on from them reach the rank's memory through operations and
// copies of its device alone: it is there for nothing else.
TEST(Checkpoint, TouchesTheDevicesMemoryByOperationsAndCopiesAlone) {
  for (const auto& [zero_stage, ranks, precision] :
       {std::tuple{0, 1, DType::bf16}, {3, 2, DType::fp32}}) {
    const Scratch scratch(shardwise::test::memory_folder());
    Plan plan = laptop_plan("shardwise", layout_of(zero_stage, ranks), 2, true);
    plan.job.precision = precision;
    plan.layout.store_param_remainders = precision == DType::bf16;
    GuardedDevice device;
    std::vector<double> losses = train_from(plan, scratch.folder(), 0, 2, 0, kUnnamedRun, device);
    for (const double loss : train_from(plan, scratch.folder(), 2, 4, 0, kUnnamedRun, device)) {
      losses.push_back(loss);
    }
    EXPECT_EQ(losses, train(plan, 4).losses);
  }
}

TEST(GuardedDevice, EndsWhoeverTouchesItsMemory) {
  GuardedDevice device;
  const DeviceMemory memory = device.allocate(4096, MemorySpace::device);
  DeviceStream stream;
  std::byte read{1};
  device.download({&read, 1}, memory.at(), stream);
  EXPECT_EQ(read, std::byte{0});
  EXPECT_DEATH({ read = *static_cast<volatile std::byte*>(memory.at()); }, "");
}

// Another number of ranks reads on where the others stopped, whatever its batch.
TEST(Checkpoint, GoesOnWithTheNextSequenceUnderAnotherBatch) {
  const Scratch scratch(shardwise::test::memory_folder());
  const Plan four = laptop_plan("shardwise", layout_of(3, 4), 1, true);
  const Plan two = laptop_plan("shardwise", layout_of(3, 2), 1, true);
  train_from(four, scratch.folder(), 0, 2);
  train_from(two, scratch.folder(), 2, 4);
  const Result<Manifest> manifest = read_manifest(scratch.folder() / complete_name(4));
  ASSERT_TRUE(manifest) << to_string(manifest.problems());
  EXPECT_EQ(manifest->sequence, 2 * 4 + 2 * 2);
}

TEST(Checkpoint, KeepsTheLastOnesAndRemovesWhatRunsThatEndedLeft) {
  const Scratch scratch(shardwise::test::memory_folder());
  const Plan plan = laptop_plan("shardwise", layout_of(2, 2), 1, true);
  std::filesystem::create_directory(scratch.folder() / partial_name(3));
  std::filesystem::create_directory(scratch.folder() / "step-by-step");
  train_from(plan, scratch.folder(), 0, 5, 2);
  EXPECT_THAT(complete_steps(scratch.folder()), ElementsAre(4, 5));
  EXPECT_FALSE(std::filesystem::exists(scratch.folder() / partial_name(3)));
  EXPECT_TRUE(std::filesystem::exists(scratch.folder() / "step-by-step"));
  // A run that goes on from the first of them takes the place of the second.
  const std::vector<double> again = train_from(plan, scratch.folder(), 4, 5, 2);
  EXPECT_THAT(complete_steps(scratch.folder()), ElementsAre(4, 5));
  EXPECT_EQ(again.back(), train(plan, 5).losses.back());
}

TEST(Checkpoint, EndsTheRunWhereItCannotBeWrittenAndKeepsTheOneBefore) {
  const Scratch scratch(shardwise::test::memory_folder());
  const Plan plan = laptop_plan("shardwise", layout_of(3, 2), 1, true);
  train_from(plan, scratch.folder(), 0, 1);
  // Under a file there are no folders.
  const std::string blocked = scratch.write_bytes("file", "");
  try {
    train_from(plan, blocked, 0, 3);
    FAIL() << "nothing was written and the run went on";
  } catch (const IoError& broken) {
    EXPECT_THAT(broken.what(), HasSubstr("rank 0: " + blocked));
  }
  EXPECT_EQ(train_from(plan, scratch.folder(), 1, 2).front(), train(plan, 2).losses.back());
}

}  // namespace
}  // namespace shardwise::exec::test
