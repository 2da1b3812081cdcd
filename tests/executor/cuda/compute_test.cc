// Each operation of Compute on a GPU of fakes leaves the tensors that the CPU's leaves.
#include "tests/executor/cuda/beside_cpu.h"

namespace shardwise::exec::test {
namespace {

constexpr std::int64_t kPassRows = 37;
constexpr std::int64_t kPassIn = 24;
constexpr std::int64_t kPassOut = 16;

TEST_P(CudaComputeIn, NormsAsTheCpuAndKeepsWhatItReads) {
  for (const bool rms : {true, false}) {
    const Operation norms = [&](Compute& compute, Tensors& t) {
      const NormShape shape = {kPassRows, 1, kPassIn, kPassIn, kPassIn, 1e-5F};
      const std::byte* const x = t.at(dtype(), kPassRows * kPassIn);
      const std::byte* const weight = t.at(dtype(), kPassIn);
      float* const statistics = t.floats(kPassRows * (rms ? 1 : 2));
      compute.norm({.shape = shape,
                    .rms = rms,
                    .dtype = dtype(),
                    .x = x,
                    .kept = t.at(dtype(), kPassRows * kPassIn),
                    .weight = weight,
                    .bias = rms ? nullptr : t.at(dtype(), kPassIn),
                    .y = t.at(dtype(), kPassRows * kPassIn),
                    .statistics = statistics},
                   t.stream());
      compute.norm_backward({.shape = shape,
                             .rms = rms,
                             .dtype = dtype(),
                             .gradient = gradient(),
                             .x = x,
                             .weight = weight,
                             .statistics = statistics,
                             .d_y = t.at(dtype(), kPassRows * kPassIn),
                             .d_x = t.at(dtype(), kPassRows * kPassIn),
                             .adds = true,
                             .d_weight = t.at(gradient(), kPassIn),
                             .d_bias = rms ? nullptr : t.at(gradient(), kPassIn)},
                            t.stream());
    };
    expect_as_cpu(norms, dtype());
  }
}

TEST_P(CudaComputeIn, MultipliesAsTheCpu) {
  for (const bool transposed : {true, false}) {
    const Operation products = [&](Compute& compute, Tensors& t) {
      const LinearShape shape = {kPassRows, kPassIn, kPassOut, kPassIn, kPassOut, transposed};
      const std::byte* const weight = t.at(dtype(), kPassIn * kPassOut);
      compute.linear({.shape = shape,
                      .dtype = dtype(),
                      .x = t.at(dtype(), kPassRows * kPassIn),
                      .weight = weight,
                      .bias = t.at(dtype(), kPassOut),
                      .y = t.at(dtype(), kPassRows * kPassOut),
                      .gelu = Gelu::tanh,
                      .activated = t.at(dtype(), kPassRows * kPassOut)},
                     t.stream());
      const std::byte* const d_y = t.at(dtype(), kPassRows * kPassOut);
      compute.linear_backward_input({.shape = shape,
                                     .dtype = dtype(),
                                     .d_y = d_y,
                                     .weight = weight,
                                     .d_x = t.at(dtype(), kPassRows * kPassIn),
                                     .adds = true},
                                    t.stream());
      compute.linear_backward_weight({.shape = shape,
                                      .dtype = dtype(),
                                      .gradient = gradient(),
                                      .x = t.at(dtype(), kPassRows * kPassIn),
                                      .d_y = d_y,
                                      .d_weight = t.at(gradient(), kPassIn * kPassOut),
                                      .d_bias = t.at(gradient(), kPassOut)},
                                     t.stream());
    };
    expect_as_cpu(products, dtype());
  }
}

TEST_P(CudaComputeIn, TurnsPairsByTablesAsTheCpu) {
  constexpr std::int64_t kPositions = 7;
  constexpr std::int64_t kWide = 56;  // of two sequences, 3 heads of 8 and 4 more
  const Operation turns = [&](Compute& compute, Tensors& t) {
    const std::vector<double> frequencies = {1, 0.1, 0.01, 0.001};
    float* const cosines = t.floats(kPositions * 4);
    float* const sines = t.floats(kPositions * 4);
    compute.rope_tables(
        {.sequence = kPositions, .frequencies = frequencies, .cosines = cosines, .sines = sines},
        t.stream());
    for (const bool backward : {false, true}) {
      compute.rope({.shape = {2, kPositions, 3, 8, kWide / 2},
                    .dtype = dtype(),
                    .tables = {cosines, sines},
                    .x = t.at(dtype(), kPositions * kWide),
                    .backward = backward},
                   t.stream());
    }
  };
  expect_as_cpu(turns, dtype());
}

TEST_P(CudaComputeIn, AttendsAsTheCpu) {
  const AttentionShape shape = {2, 21, 4, 2, 8, 9};
  const std::int64_t tokens = shape.batch * shape.sequence;
  const std::int64_t width = shape.heads * shape.head_dim;
  const Operation attends = [&](Compute& compute, Tensors& t) {
    std::byte* const qkv = t.at(dtype(), tokens * shape.qkv_width());
    std::byte* const out = t.at(dtype(), tokens * width);
    float* const log_sums = t.floats(tokens * shape.heads);
    compute.attention(
        {.shape = shape, .dtype = dtype(), .qkv = qkv, .out = out, .log_sums = log_sums},
        t.stream());
    const std::byte* const d_out = t.at(dtype(), tokens * width);
    compute.attention_backward({.shape = shape,
                                .dtype = dtype(),
                                .qkv = qkv,
                                .out = out,
                                .log_sums = log_sums,
                                .d_out = d_out,
                                .workspace = t.workspace(attention_backward_bytes(shape))},
                               t.stream());
  };
  expect_as_cpu(attends, dtype());
}

TEST_P(CudaComputeIn, ActivatesAsTheCpu) {
  const Operation activates = [&](Compute& compute, Tensors& t) {
    compute.gelu({.kind = Gelu::erf,
                  .count = kPassRows * kPassIn,
                  .dtype = dtype(),
                  .x = t.at(dtype(), kPassRows * kPassIn),
                  .y = t.at(dtype(), kPassRows * kPassIn)},
                 t.stream());
    std::byte* const gate_up = t.at(dtype(), kPassRows * 2 * kPassIn);
    compute.swiglu({.rows = kPassRows,
                    .width = kPassIn,
                    .dtype = dtype(),
                    .gate_up = gate_up,
                    .y = t.at(dtype(), kPassRows * kPassIn)},
                   t.stream());
    compute.swiglu_backward({.rows = kPassRows,
                             .width = kPassIn,
                             .dtype = dtype(),
                             .gate_up = gate_up,
                             .d_y = t.at(dtype(), kPassRows * kPassIn)},
                            t.stream());
  };
  expect_as_cpu(activates, dtype());
}

TEST_P(CudaComputeIn, LooksUpEmbeddingsWithTheBitsOfTheCpu) {
  const Operation embeds = [&](Compute& compute, Tensors& t) {
    const EmbeddingShape shape = {2, 5, kPassIn};
    const std::int64_t* const tokens =
        t.of(std::vector<std::int64_t>{3, 1, 3, 3, 0, 8, 1, 3, 7, 7});
    compute.embedding({.shape = shape,
                       .dtype = dtype(),
                       .tokens = tokens,
                       .kept = t.of(std::vector<std::int64_t>(10)),
                       .table = t.at(dtype(), 9 * kPassIn),
                       .positions = t.at(dtype(), 5 * kPassIn),
                       .y = t.at(dtype(), 10 * kPassIn)},
                      t.stream());
    compute.embedding_backward({.shape = shape,
                                .dtype = dtype(),
                                .gradient = gradient(),
                                .tokens = tokens,
                                .d_y = t.at(dtype(), 10 * kPassIn),
                                .d_table = t.at(gradient(), 9 * kPassIn),
                                .d_positions = t.at(gradient(), 5 * kPassIn)},
                               t.stream());
  };
  expect_bits_of_cpu(embeds);
}

TEST_P(CudaComputeIn, MakesTheLossByChunksAsTheCpu) {
  std::vector<double> losses_of_devices;
  const Operation losses = [&](Compute& compute, Tensors& t) {
    const CrossEntropyShape shape = {10, kPassIn, 33, 4};
    LossSum* const loss = t.beside(std::vector<LossSum>{{0.5, 2}});
    compute.head(
        {.shape = shape,
         .dtype = dtype(),
         .gradient = gradient(),
         .x = t.at(dtype(), 10 * kPassIn),
         .weight = t.at(dtype(), 33 * kPassIn),
         .targets = t.of(std::vector<std::int64_t>{0, 32, kIgnored, 5, 5, 6, kIgnored, 1, 2, 3}),
         .scale = t.of(std::vector<float>{0.25F}),
         .d_weight = t.at(gradient(), 33 * kPassIn),
         .loss = loss,
         .workspace = t.workspace(cross_entropy_bytes(shape, dtype()))},
        t.stream());
    const LossSum sum = t.taken(loss);
    EXPECT_EQ(sum.tokens, 2 + 8);
    losses_of_devices.push_back(sum.loss);
  };
  expect_as_cpu(losses, dtype());
  EXPECT_NEAR(losses_of_devices.front(), losses_of_devices.back(), 1e-5 * losses_of_devices.back());
}

// A vocabulary of no whole vectors, by chunks that the ledger's memory has fewer rows of.
TEST_P(CudaComputeIn, MakesTheLossOfAnOddVocabularyAsTheCpu) {
  const Operation losses = [&](Compute& compute, Tensors& t) {
    const CrossEntropyShape shape = {150, kPassIn, 507, 100};
    std::vector<std::int64_t> targets(150);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = i % 7 == 0 ? kIgnored : static_cast<std::int64_t>(i * 31 % 507);
    }
    compute.head({.shape = shape,
                  .dtype = dtype(),
                  .gradient = gradient(),
                  .x = t.at(dtype(), 150 * kPassIn),
                  .weight = t.at(dtype(), 507 * kPassIn),
                  .targets = t.of(targets),
                  .scale = t.of(std::vector<float>{0.25F}),
                  .d_weight = t.at(gradient(), 507 * kPassIn),
                  .loss = t.beside(std::vector<LossSum>{{0, 0}}),
                  .workspace = t.workspace(cross_entropy_bytes(shape, dtype()))},
                 t.stream());
  };
  expect_as_cpu(losses, dtype());
}

INSTANTIATE_TEST_SUITE_P(Types, CudaComputeIn, kAllTypes, name_of_types);

TEST(CudaComputeDeathTest, RefusesAWorkspaceThatIsTooSmall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeGpu gpu(5, Products::own, 256);
  const auto stream = gpu.device().stream(StreamPriority::normal);
  EXPECT_DEATH(
      gpu.compute().norm_backward({.shape = {kPassRows, 1, kPassIn, kPassIn, kPassIn, 0}}, *stream),
      "gpu_workspace_bytes");
}

}  // namespace
}  // namespace shardwise::exec::test
