// Attention by cuDNN within Compute: which works it is given, and what it is given. The fake runs
// the CPU's kernel.
#include "executor/kernels/cuda/cudnn_attention.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <thread>

#include "executor/kernels/cuda/attention_choice.h"
#include "tests/executor/cuda/beside_cpu.h"
#include "tests/executor/cudnn/fake_cudnn.h"

namespace shardwise::exec::test {
namespace {

using Attention = GpuComputeOptions::Attention;

constexpr AttentionShape kShape = {2, 24, 4, 2, 8, 9};
constexpr std::int64_t kTokens = kShape.batch * kShape.sequence;
constexpr std::int64_t kWidth = kShape.heads * kShape.head_dim;
constexpr std::int64_t kFakeWorkspace = std::int64_t{1} << 20;

template <class T>
T* place(const FakeCudnn& fake, SdpaTensor tensor) {
  const auto found = fake.places.find(static_cast<std::int64_t>(tensor));
  return found == fake.places.end() ? nullptr : static_cast<T*>(found->second);
}

/// cuDNN that attends to kShape, in the stream that it was given last.
class AttendingCudnn {
 public:
  AttendingCudnn() {
    fake.engine_bytes = 256;
    fake.on_execution = [this](const FakeCudnn& said) {
      ++executions;
      auto* const qkv = place<Bf16>(said, SdpaTensor::queries);
      auto* const out = place<Bf16>(said, SdpaTensor::out);
      auto* const log_sums = place<float>(said, SdpaTensor::log_sums);
      const auto* const d_out = place<Bf16>(said, SdpaTensor::d_out);
      auto* const d_qkv = place<Bf16>(said, SdpaTensor::d_queries);
      const auto run = [=] {
        Workers workers(1);
        if (d_out == nullptr) return attention_forward(kShape, qkv, out, log_sums, workers);
        std::copy_n(qkv, kTokens * kShape.qkv_width(), d_qkv);
        Floats sums(static_cast<std::size_t>(attention_backward_bytes(kShape)) / sizeof(float));
        attention_backward(kShape, d_qkv, out, log_sums, d_out, sums.data(), workers);
      };
      // The kernel's tiles are more than a stream of the fake has of stack.
      fake_cuda::enqueue(said.stream, "cudnnBackendExecute", [run] { std::thread(run).join(); });
    };
  }
  FakeCudnn fake;
  std::shared_ptr<const CudnnLibrary> library =
      std::make_shared<CudnnLibrary>(FakeCudnn::calls(), "a fake");
  int executions = 0;
};

/// Forward and backward. \param offset  of the result, in bytes
Operation attends(DType dtype, std::int64_t offset = 0) {
  return [dtype, offset](Compute& compute, Tensors& t) {
    std::byte* const qkv = t.at(dtype, kTokens * kShape.qkv_width());
    std::byte* const out = t.at(dtype, kTokens * kWidth + offset) + offset;
    float* const log_sums = t.floats(kTokens * kShape.heads);
    compute.attention(
        {.shape = kShape, .dtype = dtype, .qkv = qkv, .out = out, .log_sums = log_sums},
        t.stream());
    compute.attention_backward({.shape = kShape,
                                .dtype = dtype,
                                .qkv = qkv,
                                .out = out,
                                .log_sums = log_sums,
                                .d_out = t.at(dtype, kTokens * kWidth),
                                .workspace = t.workspace(attention_backward_bytes(kShape))},
                               t.stream());
  };
}

std::vector<Floats> left_with(AttendingCudnn& cudnn, Attention attention,
                              const Operation& operation) {
  FakeGpu gpu(3, {.products = Products::own, .attention = attention}, kFakeWorkspace,
              cudnn.library);
  std::vector<Floats> left = left_by(operation, gpu.device(), gpu.compute());
  EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty());
  return left;
}

TEST(CudnnAttention, AttendsInBf16AndPutsGradientsInTheirPlaces) {
  AttendingCudnn cudnn;
  EXPECT_EQ(left_with(cudnn, Attention::cudnn, attends(DType::bf16)),
            left_by_cpu(attends(DType::bf16)));
  EXPECT_EQ(cudnn.executions, 2);
  EXPECT_EQ(cudnn.fake.handle, nullptr);
  EXPECT_EQ(cudnn.fake.objects.size(), 0U);
}

TEST(CudnnAttention, LeavesFp32AndPlacesThat16DoesNotDivideToOurKernels) {
  AttendingCudnn cudnn;
  left_with(cudnn, Attention::cudnn, attends(DType::fp32));
  left_with(cudnn, Attention::cudnn, attends(DType::bf16, 8));
  EXPECT_EQ(cudnn.executions, 0);
}

TEST(CudnnAttention, LeavesAShapeWhoseEngineNeedsMoreThanTheLedgerCountsToOurKernels) {
  AttendingCudnn cudnn;
  // 48 tokens of 4 heads of 8, keys and values of each in bf16, and 256 bytes.
  constexpr std::int64_t kMost = 48 * 4 * 8 * 4 + 256;
  cudnn.fake.engine_bytes = kMost + 1;
  left_with(cudnn, Attention::cudnn, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 0);
  cudnn.fake.engine_bytes = kMost;
  left_with(cudnn, Attention::cudnn, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 2);
}

// What the heuristics offer a GPU may refuse when it compiles it.
TEST(CudnnAttention, RunsTheNextEngineWhereTheGpuRefusesTheFirst) {
  AttendingCudnn cudnn;
  cudnn.fake.engines = 2;
  cudnn.fake.refused_plans = 1;  // the forward's first
  EXPECT_EQ(left_with(cudnn, Attention::cudnn, attends(DType::bf16)),
            left_by_cpu(attends(DType::bf16)));
  EXPECT_EQ(cudnn.executions, 2);
  EXPECT_EQ(cudnn.fake.objects.size(), 0U);
}

TEST(CudnnAttention, RunsAFallbackWhereTheGpuRefusesWhatTheHeuristicsOffer) {
  AttendingCudnn cudnn;
  cudnn.fake.fallback_engines = 1;
  cudnn.fake.refused_plans = 1;
  left_with(cudnn, Attention::cudnn, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 2);
}

TEST(CudnnAttention, LeavesAShapeWhoseEnginesTheGpuRefusesToOurKernels) {
  AttendingCudnn cudnn;
  cudnn.fake.engines = 3;
  cudnn.fake.fallback_engines = 2;
  cudnn.fake.refused_plans = 1000;
  left_with(cudnn, Attention::cudnn, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 0);
  EXPECT_EQ(cudnn.fake.refused_plans, 1000 - 2 * (3 + 2));  // each once a pass
  EXPECT_EQ(cudnn.fake.objects.size(), 0U);
}

TEST(CudnnAttention, DoesNotTakeAFailureForARefusal) {
  AttendingCudnn cudnn;
  CudnnAttention attention(*cudnn.library, FakeGpu::kCapability, false);
  alignas(16) std::array<std::byte, 16> place{};
  const AttentionWork work = {.shape = kShape,
                              .dtype = DType::bf16,
                              .qkv = place.data(),
                              .out = place.data(),
                              .log_sums = reinterpret_cast<float*>(place.data())};
  cudnn.fake.fail(-1, CUDNN_STATUS_SUCCESS);  // counts from here
  EXPECT_TRUE(attention.takes(work));
  const std::int64_t calls = cudnn.fake.called;
  CudnnAttention broken(*cudnn.library, FakeGpu::kCapability, false);
  cudnn.fake.fail(calls - 2, CUDNN_STATUS_INTERNAL_ERROR);  // the plan's finalisation
  EXPECT_THROW(broken.takes(work), CudnnError);
}

/// The gradients' sum of queries is in memory where blocks of keys add to it in any order.
bool adds_in_any_order(bool deterministic) {
  AttendingCudnn cudnn;
  bool found = false;
  cudnn.fake.engine_bytes = 0;
  const auto attend = cudnn.fake.on_execution;
  cudnn.fake.on_execution = [&](const FakeCudnn& said) {
    found |= place<float>(said, SdpaTensor::d_queries_sum) != nullptr;
    attend(said);
  };
  FakeGpu gpu(
      3, {.products = Products::own, .attention = Attention::cudnn, .deterministic = deterministic},
      kFakeWorkspace, cudnn.library);
  EXPECT_EQ(left_by(attends(DType::bf16), gpu.device(), gpu.compute()),
            left_by_cpu(attends(DType::bf16)));
  EXPECT_EQ(cudnn.executions, 2);
  return found;
}

TEST(CudnnAttention, AddsGradientsInOneOrderWhereBitsAreToBeEqual) {
  EXPECT_TRUE(adds_in_any_order(false));
  EXPECT_FALSE(adds_in_any_order(true));
}

TEST(CudnnAttention, IsNotAskedForABackwardInOneOrderWhoseScoresTakeMoreThanOneGiB) {
  AttendingCudnn cudnn;
  CudnnAttention attention(*cudnn.library, FakeGpu::kCapability, true);
  alignas(16) std::array<std::byte, 16> place{};
  const auto takes = [&](std::int64_t sequence) {
    return attention.takes(AttentionBackwardWork{.shape = {1, sequence, 8, 8, 64, 0},
                                                 .dtype = DType::bf16,
                                                 .qkv = place.data(),
                                                 .out = place.data(),
                                                 .log_sums = reinterpret_cast<float*>(place.data()),
                                                 .d_out = place.data(),
                                                 .workspace = place.data()});
  };
  EXPECT_TRUE(takes(8192));  // 2 x 8 x 8192^2
  EXPECT_FALSE(takes(8193));
}

TEST(AttentionChoice, IsNotMeasuredWhereBitsAreToBeEqual) {
  AttendingCudnn cudnn;
  FakeGpu gpu(3,
              {.products = Products::own, .attention = Attention::measured, .deterministic = true},
              kFakeWorkspace, cudnn.library);
  left_by(attends(DType::bf16), gpu.device(), gpu.compute());
  EXPECT_EQ(cudnn.executions, 2);
}

TEST(CudnnAttention, IsNotAskedWhereOurKernelsAreChosen) {
  AttendingCudnn cudnn;
  left_with(cudnn, Attention::own, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 0);
  EXPECT_EQ(cudnn.fake.called, 0);
}

/// A clock by which cuDNN takes 1 s and our kernels as long as it is told.
class AttentionClock final : public KernelClock {
 public:
  AttentionClock(cudaStream_t stream, const AttendingCudnn& cudnn, double own)
      : stream_(stream), cudnn_(cudnn), own_(own) {}
  cudaStream_t stream() const override { return stream_; }
  void fill(std::span<std::byte> memory, DType /*dtype*/) override {
    std::fill(memory.begin(), memory.end(), std::byte{0});
  }
  double seconds(const std::function<void()>& issue) override {
    ++timed;
    const int before = cudnn_.executions;
    issue();
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);  // the next fill writes what it reads
    return cudnn_.executions > before ? 1 : own_;
  }
  int timed = 0;

 private:
  cudaStream_t stream_;
  const AttendingCudnn& cudnn_;
  double own_;
};

class AttentionChoiceOnFake : public testing::Test {
 protected:
  void SetUp() override {
    cudnn_.fake.engine_bytes = 256;
    fake_cuda::reset(1);
    device_ = std::make_unique<CudaDevice>(0, 0);
    stream_ = device_->stream(StreamPriority::normal);
    memory_ = device_->allocate(6 * kFakeWorkspace, MemorySpace::device);
    by_cudnn_ = std::make_unique<CudnnAttention>(*cudnn_.library, FakeGpu::kCapability, false);
  }
  void TearDown() override { EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty()); }

  std::byte* place(int number) const { return memory_.at() + number * kFakeWorkspace; }
  std::span<std::byte> workspace() const { return {place(5), kFakeWorkspace}; }
  cudaStream_t handle() const { return cuda_stream(*stream_).handle(); }
  AttentionWork forward() const {
    return {.shape = kShape,
            .dtype = DType::bf16,
            .qkv = place(0),
            .out = place(1),
            .log_sums = reinterpret_cast<float*>(place(2))};
  }
  AttentionBackwardWork backward() const {
    return {.shape = kShape,
            .dtype = DType::bf16,
            .qkv = place(0),
            .out = place(1),
            .log_sums = reinterpret_cast<float*>(place(2)),
            .d_out = place(3),
            .workspace = place(4)};
  }
  /// How often cuDNN runs forward and backward, behind what was prepared. \param own  seconds of
  /// our kernels
  KernelTuning prepared(ChosenAttention& attention, AttentionClock& clock) const {
    KernelTuning tuning = {.clock = clock, .workspace = workspace()};
    attention.prepare(forward(), tuning);
    attention.prepare(backward(), tuning);
    attention.prepare(forward(), tuning);
    attention.prepare(backward(), tuning);
    device_->synchronize(*stream_);
    return tuning;
  }
  int executions(ChosenAttention& attention) {
    const int before = cudnn_.executions;
    attention.forward(forward(), workspace(), handle());
    attention.backward(backward(), workspace(), handle());
    device_->synchronize(*stream_);
    return cudnn_.executions - before;
  }

  AttendingCudnn cudnn_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceStream> stream_;
  DeviceMemory memory_;
  std::unique_ptr<CudnnAttention> by_cudnn_;
};

constexpr const char* kForward = "forward bf16 2x24 4/2 heads of 8 window 9";
constexpr const char* kBackward = "backward bf16 2x24 4/2 heads of 8 window 9";

TEST_F(AttentionChoiceOnFake, IsTheFasterOfBothTimedOnceAShape) {
  for (const double own : {0.5, 2.0}) {
    ChosenAttention attention(*by_cudnn_, ChosenAttention::Rule::measured);
    AttentionClock clock(handle(), cudnn_, own);
    const KernelTuning tuning = prepared(attention, clock);
    EXPECT_EQ(clock.timed, 4);
    EXPECT_THAT(tuning.timed, testing::ElementsAre(kBackward, kForward));
    KernelChoices choices;
    attention.add_to(choices);
    const AttentionChoice expected = {own > 1, 1e6, 1e6 * own};
    EXPECT_EQ(choices.attention, (AttentionChoices{{kForward, expected}, {kBackward, expected}}));
    EXPECT_EQ(executions(attention), own > 1 ? 2 : 0);
  }
}

TEST_F(AttentionChoiceOnFake, IsWhatWasKeptAndNothingIsTimedThen) {
  for (const bool cudnn : {false, true}) {
    ChosenAttention attention(*by_cudnn_, ChosenAttention::Rule::measured);
    attention.take({{}, {{kForward, {cudnn, 1, 1}}, {kBackward, {cudnn, 1, 1}}}});
    AttentionClock clock(handle(), cudnn_, 1);
    const KernelTuning tuning = prepared(attention, clock);
    EXPECT_EQ(clock.timed, 0);
    EXPECT_THAT(tuning.kept, testing::ElementsAre(kBackward, kForward));
    EXPECT_EQ(executions(attention), cudnn ? 2 : 0);
  }
}

TEST_F(AttentionChoiceOnFake, WaitsAndMakesNothingWhenAWorkIsIssued) {
  ChosenAttention attention(*by_cudnn_, ChosenAttention::Rule::measured);
  AttentionClock clock(handle(), cudnn_, 2);
  prepared(attention, clock);
  const std::int64_t created = cudnn_.fake.created;
  const auto waits = [] {
    auto calls = fake_cuda::calls();
    return calls["cudaStreamSynchronize"] + calls["cudaEventSynchronize"] + calls["cudaEventQuery"];
  };
  const int waited = waits();
  attention.forward(forward(), workspace(), handle());
  attention.backward(backward(), workspace(), handle());
  EXPECT_EQ(waits(), waited);
  EXPECT_EQ(cudnn_.fake.created, created + 2);  // where a work's tensors lie, each
  device_->synchronize(*stream_);
}

TEST_F(AttentionChoiceOnFake, IsCudnnForAShapeThatWasNotPreparedAndIsNotTimed) {
  ChosenAttention attention(*by_cudnn_, ChosenAttention::Rule::measured);
  EXPECT_EQ(executions(attention), 2);
  KernelChoices choices;
  attention.add_to(choices);
  EXPECT_THAT(choices.attention, testing::IsEmpty());
}

}  // namespace
}  // namespace shardwise::exec::test
