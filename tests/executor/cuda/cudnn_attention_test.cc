// Attention by cuDNN within Compute: which works it is given, and what it is given. The fake runs
// the CPU's kernel.
#include "executor/kernels/cuda/cudnn_attention.h"

#include <algorithm>
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
constexpr std::int64_t kWorkspace = std::int64_t{1} << 20;

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
  FakeGpu gpu(3, {.products = Products::own, .attention = attention}, kWorkspace, cudnn.library);
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

TEST(CudnnAttention, IsNotAskedWhereOurKernelsAreChosen) {
  AttendingCudnn cudnn;
  left_with(cudnn, Attention::own, attends(DType::bf16));
  EXPECT_EQ(cudnn.executions, 0);
  EXPECT_EQ(cudnn.fake.called, 0);
}

// The fake's time says nothing of which is faster; nothing of being timed is left either way.
TEST(AttentionChoice, IsMeasuredOnceAShapeAndLeavesWhatTheChosenKernelsLeave) {
  AttendingCudnn cudnn;
  const Operation twice = [](Compute& compute, Tensors& t) {
    attends(DType::bf16)(compute, t);
    attends(DType::bf16)(compute, t);
  };
  const std::vector<Floats> cpu = left_by_cpu(twice);
  const std::vector<Floats> left = left_with(cudnn, Attention::measured, twice);
  ASSERT_EQ(left.size(), cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    expect_close(left[i], doubles(cpu[i]), 1.0 / 128, "tensor");
  }
  // Each pass warms up and is timed; then it runs in both or in neither.
  EXPECT_THAT(cudnn.executions, testing::AnyOf(4, 6, 8));
}

TEST(AttentionChoice, SaysWhatWasMeasured) {
  AttendingCudnn cudnn;
  cudnn.fake.engine_bytes = 0;
  fake_cuda::reset(1);
  CudaDevice device(0, 0);
  const auto stream = device.stream(StreamPriority::normal);
  CudnnAttention by_cudnn(*cudnn.library, FakeGpu::kCapability);
  ChosenAttention attention(by_cudnn, ChosenAttention::Rule::measured, 0);
  const DeviceMemory memory = device.allocate(4 * kWorkspace, MemorySpace::device);
  attention.forward({.shape = kShape,
                     .dtype = DType::bf16,
                     .qkv = memory.at(),
                     .out = memory.at() + kWorkspace,
                     .log_sums = reinterpret_cast<float*>(memory.at() + 2 * kWorkspace)},
                    {memory.at() + 3 * kWorkspace, kWorkspace}, cuda_stream(*stream).handle());
  device.synchronize(*stream);
  ASSERT_EQ(attention.choices().size(), 1U);
  const auto& [name, choice] = *attention.choices().begin();
  EXPECT_EQ(name, "forward bf16 2x24 4/2 heads of 8 window 9");
  EXPECT_GT(choice.cudnn_microseconds, 0);
  EXPECT_GT(choice.own_microseconds, 0);
  EXPECT_EQ(choice.cudnn, choice.cudnn_microseconds <= choice.own_microseconds);
}

}  // namespace
}  // namespace shardwise::exec::test
