// Attention by cuDNN and products by cuBLASLt on a GPU, in sizes of real layers, beside the CPU.
#include "executor/kernels/cuda/cudnn_attention.h"
#include "executor/kernels/cudnn/cudnn_library.h"
#include "tests/executor/cuda/beside_cpu.h"

namespace shardwise::exec::test {
namespace {

constexpr std::int64_t kLibraryWorkspace = std::int64_t{256} << 20;

/// Within `tolerance` of each tensor's largest number.
void expect_library_as_cpu(const Operation& operation, FakeGpu& gpu, double tolerance) {
  const std::vector<Floats> left = left_by(operation, gpu.device(), gpu.compute());
  const std::vector<Floats> cpu = left_by_cpu(operation);
  ASSERT_EQ(left.size(), cpu.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(left[i], doubles(cpu[i]), tolerance, "tensor");
  }
}

class GpuCudnnAttention : public testing::TestWithParam<AttentionShape> {
 protected:
  void SetUp() override {
    try {
      library_ = std::make_shared<CudnnLibrary>(CudnnLibrary::open());
    } catch (const IoError& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  std::shared_ptr<const CudnnLibrary> library_;
};

// cuDNN rounds probabilities and their gradients to bf16 before it multiplies them, which the CPU
// does not: two roundings of 2^-8 beside those of the results.
constexpr double kRoundedProbabilities = 1.0 / 64;

TEST_P(GpuCudnnAttention, EqualsTheCpuForwardAndBackward) {
  const AttentionShape shape = GetParam();
  const std::int64_t tokens = shape.batch * shape.sequence;
  const std::int64_t width = shape.heads * shape.head_dim;
  FakeGpu gpu(1, {.products = Products::own, .attention = GpuComputeOptions::Attention::cudnn},
              kLibraryWorkspace, library_);
  CudnnAttention asked(*library_, gpu.device().facts().capability, false);
  const Operation attends = [&](Compute& compute, Tensors& t) {
    std::byte* const qkv = t.at(DType::bf16, tokens * shape.qkv_width());
    std::byte* const out = t.at(DType::bf16, tokens * width);
    float* const log_sums = t.floats(tokens * shape.heads);
    const AttentionWork forward = {shape, DType::bf16, qkv, out, log_sums};
    const AttentionBackwardWork backward = {shape,
                                            DType::bf16,
                                            qkv,
                                            out,
                                            log_sums,
                                            t.at(DType::bf16, tokens * width),
                                            t.workspace(attention_backward_bytes(shape))};
    if (&compute == &gpu.compute()) {
      EXPECT_TRUE(asked.takes(forward));
      EXPECT_TRUE(asked.takes(backward));
    }
    compute.attention(forward, t.stream());
    compute.attention_backward(backward, t.stream());
  };
  expect_library_as_cpu(attends, gpu, kRoundedProbabilities);
}

// batch, sequence, heads, kv_heads, head_dim, window: GPT-2's heads, Llama-3.2's 1B and 3B, a
// sequence that no tile divides, and a window.
INSTANTIATE_TEST_SUITE_P(
    Shapes, GpuCudnnAttention,
    testing::Values(AttentionShape{2, 128, 12, 12, 64, 0}, AttentionShape{1, 1024, 4, 4, 64, 0},
                    AttentionShape{1, 512, 32, 8, 64, 0}, AttentionShape{1, 384, 24, 8, 128, 0},
                    AttentionShape{2, 333, 4, 2, 128, 0}, AttentionShape{1, 520, 6, 2, 64, 128}));

/// Rows, features in and out, whether the weight is [in, out].
using Product = std::tuple<LinearShape, Types>;
class GpuProducts : public testing::TestWithParam<Product> {};

TEST_P(GpuProducts, EqualTheCpuWithBiasGeluAndSumsOfGradients) {
  const auto& [shape, types] = GetParam();
  FakeGpu gpu(1, Products::cublaslt, kLibraryWorkspace);
  const Operation products = [shape = shape, types = types](Compute& compute, Tensors& t) {
    const std::byte* const weight = t.at(types.dtype, shape.in * shape.out);
    const std::byte* const x = t.at(types.dtype, shape.rows * shape.in);
    const std::byte* const d_y = t.at(types.dtype, shape.rows * shape.out);
    compute.linear({.shape = shape,
                    .dtype = types.dtype,
                    .x = x,
                    .weight = weight,
                    .bias = t.at(types.dtype, shape.out),
                    .y = t.at(types.dtype, shape.rows * shape.out),
                    .gelu = Gelu::tanh,
                    .activated = t.at(types.dtype, shape.rows * shape.out)},
                   t.stream());
    compute.linear_backward_input({.shape = shape,
                                   .dtype = types.dtype,
                                   .d_y = d_y,
                                   .weight = weight,
                                   .d_x = t.at(types.dtype, shape.rows * shape.in),
                                   .gelu = Gelu::tanh,
                                   .before = t.at(types.dtype, shape.rows * shape.in)},
                                  t.stream());
    compute.linear_backward_weight({.shape = shape,
                                    .dtype = types.dtype,
                                    .gradient = types.gradient,
                                    .x = x,
                                    .d_y = d_y,
                                    .d_weight = t.at(types.gradient, shape.in * shape.out),
                                    .d_bias = t.at(types.gradient, shape.out)},
                                   t.stream());
  };
  // A product of 3072 numbers in another order, in fp32; roundings of the results in bf16.
  expect_library_as_cpu(products, gpu, types.dtype == DType::fp32 ? 1e-4 : 1.0 / 64);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GpuProducts,
    testing::Combine(testing::Values(LinearShape{256, 768, 3072, 768, 3072, true},
                                     LinearShape{192, 3072, 768, 3072, 768, false},
                                     LinearShape{77, 136, 264, 136, 264, false}),
                     kAllTypes));

}  // namespace
}  // namespace shardwise::exec::test
