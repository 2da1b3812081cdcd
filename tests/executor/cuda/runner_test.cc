// Programs of the project's own kernels on several streams: on fakes, and the same on a GPU, where
// nothing but events keeps an operation from reading what is not there yet.
#include "executor/device/cuda/cuda_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/cuda/movement.h"
#include "tests/executor/cuda/on_host.h"
#include "tests/executor/device/hand_made.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

// On a GPU large enough that kernels overlap; the thread sanitizer takes long for each thread.
constexpr std::size_t kTensorElements = kOnGpu ? std::size_t{1} << 20 : 700;
constexpr std::uint32_t kOperations = kOnGpu ? 60 : shardwise::test::kSanitized ? 8 : 20;
constexpr std::uint32_t kPrograms = shardwise::test::kSanitized ? 1 : 5;
constexpr float kShare = 0.25F;

/// Operation i has a tensor: the sum of those of all operations before it, times kShare, and the
/// number of the run. What is read too early is of the run before, what is written twice too large.
class Sums {
 public:
  Sums(CudaDevice& device, const StageProgram& program)
      : program_(program),
        memory_(device.allocate(bytes(program.operations.size() + 1), MemorySpace::device)),
        share_(device.allocate(bytes(1), MemorySpace::device)),
        stream_(device.stream(StreamPriority::normal)) {
    device.upload(share_.at(), std::as_bytes(std::span(&kShare, 1)), *stream_);
    device.synchronize(*stream_);
    for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
      kernels_.emplace_back(
          [this, op](DeviceStream& stream) { issue(op, cuda_stream(stream).handle()); });
    }
  }

  const OpKernels& kernels() const { return kernels_; }
  void set_run(CudaDevice& device, float run) {
    const Floats values(kTensorElements, run);
    device.upload(tensor(0).data, std::as_bytes(std::span(values)), *stream_);
    device.synchronize(*stream_);
  }
  /// Operations with a number that is not what it must be.
  int wrong(CudaDevice& device, float run) {
    std::vector<float> expected;
    int wrong = 0;
    for (std::uint32_t op = 0; op < program_.operations.size(); ++op) {
      float sum = 0;
      for (const std::uint32_t each : before(program_, op)) sum += expected[each];
      sum *= kShare;
      expected.push_back(sum + run);
      Floats values(kTensorElements);
      device.download(std::as_writable_bytes(std::span(values)), tensor(1 + op).data, *stream_);
      wrong += std::ranges::all_of(values, [&](float v) { return v == expected[op]; }) ? 0 : 1;
    }
    return wrong;
  }

 private:
  static std::int64_t bytes(std::size_t tensors) {
    return static_cast<std::int64_t>(tensors * kTensorElements * sizeof(float));
  }
  TensorView tensor(std::size_t index) const {
    return {memory_.at() + bytes(index), kTensorElements, DType::fp32};
  }
  void issue(std::uint32_t op, cudaStream_t stream) {
    const TensorView own = tensor(1 + op);
    cuda::clear(own, stream);
    for (const std::uint32_t each : before(program_, op)) {
      cuda::accumulate(own, tensor(1 + each), stream);
    }
    cuda::scale({own, reinterpret_cast<const float*>(share_.at())}, stream);
    cuda::accumulate(own, tensor(0), stream);
  }

  const StageProgram& program_;
  DeviceMemory memory_;
  DeviceMemory share_;
  std::unique_ptr<DeviceStream> stream_;
  OpKernels kernels_;
};

StageProgram without_waits(StageProgram program) {
  for (ProgramOp& op : program.operations) op.waits = {};
  return program;
}

/// Operations that were wrong in all runs. \param recorded  every third run has its spans
/// \param waits  false: operations run without waiting for other streams
int wrong_in(std::uint32_t seed, int streams, bool graphs, bool recorded, bool waits = true) {
  fake_cuda::reset(seed);
  std::mt19937 random(seed);
  const StageProgram program = random_program(random, kOperations, streams);
  int wrong = 0;
  {
    CudaDevice device(0, 0);
    Sums sums(device, program);
    AbortSignal abort;
    const StageProgram run_program = waits ? program : without_waits(program);
    CudaRunner runner({&run_program}, 0, abort, graphs ? "" : "not asked for");
    constexpr int kRuns = 6;
    for (int run = 1; run <= kRuns; ++run) {
      sums.set_run(device, static_cast<float>(run));
      const bool spans = recorded && run % 3 == 0;
      runner.run(0, sums.kernels(), spans ? Spans::recorded : Spans::none);
      wrong += sums.wrong(device, static_cast<float>(run));
      if (!spans) continue;
      EXPECT_EQ(runner.spans().size(), program.operations.size());
      for (const OpSpan& each : runner.spans()) EXPECT_LE(each.begin, each.end);
    }
    EXPECT_EQ(runner.has_graph(0), graphs);
  }
  EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty());
  EXPECT_EQ(fake_cuda::left_over(), "");
  return wrong;
}

TEST(CudaRunnerOfKernels, GivesEveryOperationWhatThoseBeforeItWrote) {
  for (std::uint32_t seed = 1; seed <= kPrograms; ++seed) {
    EXPECT_EQ(wrong_in(seed, 5, false, false), 0) << "seed " << seed;
  }
}

TEST(CudaRunnerOfKernels, GivesTheSameAsAGraphWhoseInputChanges) {
  for (std::uint32_t seed = 6; seed < 6 + kPrograms; ++seed) {
    EXPECT_EQ(wrong_in(seed, 5, true, false), 0) << "seed " << seed;
  }
}

TEST(CudaRunnerOfKernels, GivesTheSameWhileSpansAreRecordedBetweenGraphs) {
  EXPECT_EQ(wrong_in(11, 3, true, true), 0);
  EXPECT_EQ(wrong_in(12, 1, false, true), 0);
}

// Or these tests would show nothing.
TEST(CudaRunnerOfKernels, GivesOtherNumbersWhereNothingWaits) {
  if (kOnGpu || shardwise::test::kSanitized)
    GTEST_SKIP() << "by chance on a GPU; sanitizers end at the race";
  EXPECT_GT(wrong_in(13, 5, false, false, false), 0);
}

}  // namespace
}  // namespace shardwise::exec::test
