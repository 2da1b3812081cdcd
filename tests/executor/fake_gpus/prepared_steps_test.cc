// What a rank does before its first step, so that no step does it.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/cuda/cuda_platform.h"
#include "executor/engine/trainer.h"
#include "executor/kernels/cuda/cublaslt_library.h"
#include "planner/lowering/operands/state_types.h"
#include "planner/lowering/stage/lowering_context.h"
#include "tests/executor/engine/stand_in.h"
#include "tests/executor/fake_gpus/fake_gpus.h"
#include "tests/executor/fake_gpus/gpu_run.h"

namespace shardwise::exec::test {
namespace {

LayerKernels layers_of(const Plan& plan) {
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  return {[&plan, shape](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
          [&plan, shape](std::byte* tables, const Issue& to) {
            fill_tables(plan.model, shape, tables, to);
          }};
}

/// Calls of cuBLASLt but those that set an address and multiply, and of CUDA those that allocate.
std::map<std::string, int> made_so_far() {
  std::map<std::string, int> made;
  for (const auto& [call, count] : gpu_calls()) {
    const bool asks = call.starts_with("cublasLt") && call != "cublasLtMatmul" &&
                      call != "cublasLtMatmulDescSetAttribute";
    if (asks || call == "cudaMalloc" || call == "cudaHostAlloc") made[call] = count;
  }
  return made;
}

TEST(PreparedSteps, AskCublasLtForNothingAndAllocateNothing) {
  try {
    CublasLtLibrary::open();
  } catch (const CublasLtError& missing) {
    GTEST_SKIP() << missing.what();
  }
  ::setenv("SHARDWISE_KERNEL_CHOICES", "off", 1);
  for (const char* const model : {"gpt2", "llama"}) {
    Plan plan = small_plan(model, DType::bf16, 0, 1);
    plan.job.sequence_length = 8;
    fake_cuda::Machine machine;
    machine.total_bytes = std::int64_t{1} << 32;
    reset_fake_gpus(3, machine, FakeKernels::gpu);
    const std::unique_ptr<GpuPlatform> platform = fake_gpu_plugin()->open();
    platform->open_libraries({}, {});
    const TokenSequences data = laptop_text(plan);
    std::vector<std::string> told;
    std::vector<double> losses;
    AbortSignal abort;
    Arena arena;
    std::unique_ptr<Device> device;
    run_ranks(
        1, abort,
        [&](World& world) {
          device = platform->device({}, {});
          TrainOptions options;
          options.tell = [&](const std::string& line) { told.push_back(line); };
          Trainer trainer(plan, world, *device, arena, abort, options, layers_of(plan));
          // States begin as if nothing had been timed on their memory: all of the arena but for
          // the kernels' workspace.
          std::vector<std::byte> memory(arena.memory().size(), std::byte{1});
          const auto stream = device->stream(StreamPriority::normal);
          device->download(memory, arena.memory().data(), *stream);
          const BufferId block = trainer.program(0).kernel_workspace;
          std::fill_n(memory.begin() + (arena.at(0, block) - arena.memory().data()),
                      trainer.program(0).buffers[block].bytes, std::byte{0});
          EXPECT_EQ(std::ranges::count(memory, std::byte{0}), std::ssize(memory));
          trainer.initialise();
          const std::map<std::string, int> prepared = made_so_far();
          for (int step = 0; step < 5; ++step) losses.push_back(trainer.step(data).loss);
          EXPECT_EQ(made_so_far(), prepared) << model;
        },
        std::chrono::seconds(60));
    EXPECT_THAT(told, testing::ElementsAre(testing::ContainsRegex(
                          "^kernels of [0-9]+ shapes: [1-9][0-9]* timed in [0-9.]+ s, 0 as kept; "
                          "not kept$")));
    EXPECT_EQ(losses.size(), 5U);
  }
}

}  // namespace
}  // namespace shardwise::exec::test
