#include "executor/weights/save_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "tests/executor/engine/stand_in.h"
#include "tests/executor/support/guarded_device.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Scratch;
using Files = std::map<std::string, std::string>;  // by name

/// What a folder of weights holds that were trained for two steps on a device.
Files saved_after_two_steps(const Plan& plan, StoredType type, Device& device) {
  const Scratch scratch(shardwise::test::memory_folder());
  const TokenSequences data = laptop_text(plan);
  AbortSignal abort;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  const auto rank_main = [&](World& world) {
    Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
    Trainer trainer(plan, world, device, arena, abort, {}, stand_in_kernels(plan));
    trainer.initialise();
    for (int step = 0; step < 2; ++step) trainer.step(data);
    save_weights(trainer.state(), arena, device, plan, trainer.everyone(),
                 {scratch.folder(), type});
  };
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
  Files files;
  for (const auto& each : std::filesystem::directory_iterator(scratch.folder())) {
    std::ifstream file(each.path(), std::ios::binary);
    files[each.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

// As on a GPU: the host touches tensors of the device by copies alone. Rank 0 has pieces of its own
// and others that it is sent.
TEST(SaveWeights, NeedsNoTensorOfTheDeviceInTheHostsReach) {
  for (const auto& [zero_stage, precision, type] :
       {std::tuple{0, DType::bf16, StoredType::f32}, {3, DType::fp32, StoredType::bf16}}) {
    Layout layout;
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    layout.dp_shard = 2;
    Plan plan = laptop_plan("shardwise", layout, 1, true);
    plan.job.precision = precision;
    plan.model.model_type = "llama";
    GuardedDevice guarded;
    CpuDevice open;
    const Files files = saved_after_two_steps(plan, type, guarded);
    EXPECT_GT(files.at("model.safetensors").size(), 1000U);
    EXPECT_EQ(files, saved_after_two_steps(plan, type, open)) << zero_stage;
  }
}

}  // namespace
}  // namespace shardwise::exec::test
