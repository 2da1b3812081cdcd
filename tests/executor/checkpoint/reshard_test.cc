// Checkpoints of tensor parallelism: what ranks have parts of is the same under every mesh.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/checkpointer.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "executor/checkpoint/verify.h"
#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/small_plans.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Scratch;

SavedCheckpoint opened(const std::filesystem::path& folder) {
  Result<SavedCheckpoint> saved = SavedCheckpoint::open(folder);
  if (!saved) throw IoError(to_string(saved.problems()));
  const Diagnostics altered = saved->altered(0, 1);
  if (!altered.empty()) throw IoError(to_string(altered));
  return *std::move(saved);
}

/// Trains a plan for some steps, anew or from a checkpoint, and saves what it has then in `folder`.
/// \returns the losses
std::vector<double> go_on(const Plan& plan, const SavedCheckpoint* saved, std::int64_t steps,
                          const std::filesystem::path& folder) {
  const TokenSequences data = few_tokens(plan);
  TrainOptions options;
  options.optimizer.peak_learning_rate = 0.003;
  Manifest about;
  about.tensors = saved_tensors(plan);
  if (saved != nullptr) {
    EXPECT_TRUE(saved->differences(about.tensors).empty());
  }
  std::vector<double> losses;
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  const auto rank_main = [&](World& world) {
    Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
    Trainer trainer(plan, world, device, arena, abort, options, kernels_of(plan, world.rank()));
    trainer.initialise();
    if (saved != nullptr) {
      load_state(*saved, trainer.state(), arena, device);
      trainer.resume(saved->manifest().step, saved->manifest().sequence);
    }
    for (std::int64_t s = 0; s < steps; ++s) {
      const double loss = trainer.step(data).loss;
      if (world.rank() == 0) losses.push_back(loss);
    }
    Checkpointer checkpointer(folder, 0, about, world, abort);
    checkpointer.save(trainer.state(), arena, device, trainer.next_step(), trainer.next_sequence());
    checkpointer.finish();
  };
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
  return losses;
}

/// All of one state of a tensor.
std::vector<float> all_of(const SavedCheckpoint& saved, SavedState state,
                          const SavedTensor& tensor) {
  const std::int64_t elements = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                                std::int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<std::size_t>(elements));
  saved.read(state, tensor.name, 0, values);
  return values;
}

/// Every weight and moment of both has the same bits.
void expect_same(const SavedCheckpoint& a, const SavedCheckpoint& b, const std::string& mesh) {
  ASSERT_EQ(a.manifest().tensors.size(), b.manifest().tensors.size());
  for (const SavedTensor& tensor : a.manifest().tensors) {
    for (std::size_t s = 0; s < kSavedStates; ++s) {
      const auto state = static_cast<SavedState>(s);
      EXPECT_TRUE(all_of(a, state, tensor) == all_of(b, state, tensor))
          << mesh << ": " << kSavedStateNames[s] << " of " << tensor.name;
    }
  }
}

Layout in_stages(std::int32_t pp, std::int32_t vpp = 1, Layout layout = over(1)) {
  layout.pp = pp;
  layout.vpp = vpp;
  return layout;
}

Layout with_replicas(Layout layout, bool outer) {
  layout.dp_replicate = 2;
  layout.outer_shards_optimizer = outer;
  return layout;
}

// From every mesh to the next, and what each one has in memory is saved again.
TEST(Reshard, KeepsEveryBitOfWeightsAndMomentsOverEveryMesh) {
  for (const char* model : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    const bool few_heads = std::string(model) == "qwen3-tiny";  // two of keys and values
    const std::vector<Layout> meshes = {over(1),
                                        over(2),
                                        over(1, 2, 3),
                                        few_heads ? over(2, 2, 1) : over(4),
                                        std::string(model) == "llama-tiny" ? over(8) : over(2),
                                        in_stages(2),
                                        over(2, 2, 3),
                                        over(2, 3, 2),
                                        with_replicas(over(2, 2, 3), true),
                                        over(2),
                                        with_replicas(over(2, 2, 0), false),
                                        in_stages(2, 1, over(2)),
                                        in_stages(2, 1, over(2, 2, 3)),
                                        over(1)};
    const Scratch scratch(shardwise::test::memory_folder());
    const auto folder = [&](std::size_t i) { return scratch.folder() / std::to_string(i); };
    for (std::size_t i = 0; i <= meshes.size(); ++i) std::filesystem::create_directory(folder(i));
    go_on(small_plan_of(model, over(2)), nullptr, 2, folder(0));
    const SavedCheckpoint first = opened(folder(0) / complete_name(2));
    for (std::size_t i = 0; i < meshes.size(); ++i) {
      const SavedCheckpoint before = opened(folder(i) / complete_name(2));
      go_on(small_plan_of(model, meshes[i]), &before, 0, folder(i + 1));
      const SavedCheckpoint after = opened(folder(i + 1) / complete_name(2));
      expect_same(first, after, fmt::format("{}, mesh {}", model, i));
    }
  }
}

TEST(Reshard, GoesOnWithTheSameBitsUnderTheSameMesh) {
  for (const Layout& mesh : {over(2), over(2, 2, 3)}) {
    const Plan plan = small_plan_of("gpt2-tiny", mesh);
    const Scratch scratch(shardwise::test::memory_folder());
    const std::vector<double> whole = go_on(plan, nullptr, 4, scratch.folder());
    std::vector<double> losses = go_on(plan, nullptr, 2, scratch.folder());
    const SavedCheckpoint saved = opened(scratch.folder() / complete_name(2));
    for (const double loss : go_on(plan, &saved, 2, scratch.folder())) losses.push_back(loss);
    EXPECT_EQ(losses, whole);
  }
}

// Masters of bf16 weights in halves, or whole.
TEST(Reshard, GoesOnInBf16) {
  Plan plan = small_plan_of("llama-tiny", over(2, 2, 3));
  plan.job.precision = DType::bf16;
  const Scratch scratch(shardwise::test::memory_folder());
  const std::vector<double> whole = go_on(plan, nullptr, 3, scratch.folder());
  std::vector<double> losses = go_on(plan, nullptr, 2, scratch.folder());
  plan.layout.store_param_remainders = !plan.layout.store_param_remainders;
  const SavedCheckpoint saved = opened(scratch.folder() / complete_name(2));
  for (const double loss : go_on(plan, &saved, 1, scratch.folder())) losses.push_back(loss);
  EXPECT_EQ(losses, whole);
}

// A step a mesh, each from the checkpoint of the one before, over both axes. All of them train four
// sequences a step.
TEST(Reshard, FollowsTheCurveOfARunThatWasNeverInterrupted) {
  const auto plan = [](const Layout& layout) {
    return small_plan_of("gpt2-tiny", layout, 4 / layout.dp());
  };
  const std::vector<Layout> meshes = {over(2),
                                      over(1),
                                      over(4),
                                      in_stages(2),
                                      over(2, 2, 3),
                                      in_stages(2, 2),
                                      over(2, 2, 2),
                                      over(1, 4, 3),
                                      over(4, 2, 1),
                                      in_stages(4),
                                      over(2, 4, 3),
                                      over(1, 2, 0),
                                      in_stages(2, 1, over(2, 2, 3)),
                                      in_stages(2, 2, over(2)),
                                      over(4),
                                      in_stages(4, 1, over(2)),
                                      over(2)};
  const Scratch scratch(shardwise::test::memory_folder());
  const std::vector<double> whole =
      go_on(plan(over(1)), nullptr, std::ssize(meshes), scratch.folder());
  std::optional<SavedCheckpoint> saved;
  for (std::size_t i = 0; i < meshes.size(); ++i) {
    const double loss =
        go_on(plan(meshes[i]), saved ? &*saved : nullptr, 1, scratch.folder()).front();
    EXPECT_NEAR(loss, whole[i], 1e-5 * whole[i]) << "step " << i;
    saved.emplace(opened(scratch.folder() / complete_name(static_cast<std::int64_t>(i) + 1)));
  }
  EXPECT_LT(whole.back(), whole.front());
}

// Each rank writes its parts, and the first of them what all have whole: no byte is there twice.
TEST(Reshard, WritesEveryElementOnce) {
  const Plan plan = small_plan_of("gpt2-tiny", over(2, 2, 3));
  const Scratch scratch(shardwise::test::memory_folder());
  go_on(plan, nullptr, 1, scratch.folder());
  const SavedCheckpoint saved = opened(scratch.folder() / complete_name(1));
  ASSERT_EQ(saved.manifest().files.size(), 4U);
  std::int64_t elements = 0;
  for (const SavedFile& file : saved.manifest().files) {
    for (const SavedSlice& slice : file.slices) elements += slice.count;
  }
  std::int64_t expected = 0;
  std::size_t cut = 0;
  for (const SavedTensor& tensor : saved.manifest().tensors) {
    expected += std::ssize(all_of(saved, SavedState::weights, tensor));
    if (tensor.cut.cut()) ++cut;
  }
  EXPECT_EQ(elements, expected);
  EXPECT_GT(cut, 10U);
  const VerifiedFolder verified = verify_checkpoints(scratch.folder(), {});
  ASSERT_EQ(verified.checkpoints.size(), 1U);
  EXPECT_TRUE(verified.all_good());
}

TEST(Reshard, NamesTheFileAndTensorOfAPartThatWasAltered) {
  const Scratch scratch(shardwise::test::memory_folder());
  go_on(small_plan_of("gpt2-tiny", over(2)), nullptr, 1, scratch.folder());
  const std::filesystem::path name = scratch.folder() / complete_name(1) / "rank-00001.safetensors";
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const int last = file.get();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();
  const VerifiedFolder verified = verify_checkpoints(scratch.folder(), {});
  ASSERT_EQ(verified.checkpoints.size(), 1U);
  const Diagnostics& problems = verified.checkpoints.front().problems;
  ASSERT_EQ(problems.size(), 1U) << to_string(problems);
  EXPECT_EQ(problems.front().file, name.string());
  EXPECT_TRUE(problems.front().path.starts_with("/second_moment/transformer."))
      << problems.front().path;
}

}  // namespace
}  // namespace shardwise::exec::test
