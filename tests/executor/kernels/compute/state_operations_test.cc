// What moves tensors and updates a rank's state gives the bits of the functions it stands for.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "executor/kernels/compute/cpu_compute.h"
#include "executor/optimizer/exact_sum.h"
#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

/// Drawn elements in memory of their own.
struct Tensor {
  Tensor(const Floats& values, DType type) : bytes(values.size() * (type == DType::fp32 ? 4 : 2)) {
    view = {bytes.data(), values.size(), type};
    cast(view, values);
  }
  Tensor(std::int64_t count, DType type, unsigned seed)
      : Tensor(random_floats(count, seed), type) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  Floats values() const {
    Floats wide(view.count);
    cast(wide, view);
    return wide;
  }

  std::vector<std::byte> bytes;
  TensorView view;
};

struct StateOperations : testing::Test {
  Workers workers{2};
  CpuCompute compute{workers};
  DeviceStream stream;
};

constexpr DType kBoth[] = {DType::fp32, DType::bf16};
constexpr std::int64_t kCount = 5001;  // no multiple of a block

TEST_F(StateOperations, MoveAsTheFunctionsOfTensorsDo) {
  for (const DType dtype : kBoth) {
    for (const DType other : kBoth) {
      const Tensor from(kCount, other, 1);
      const Tensor to(kCount, dtype, 2);
      const Tensor expected(kCount, dtype, 2);
      compute.accumulate(to.view, from.view, stream);
      accumulate(expected.view, from.view);
      EXPECT_EQ(to.bytes, expected.bytes) << name_of(dtype) << name_of(other);
      compute.cast(to.view, from.view, stream);
      cast(expected.view, from.view);
      EXPECT_EQ(to.bytes, expected.bytes) << name_of(dtype) << name_of(other);
    }
    const Tensor tensor(kCount, dtype, 3);
    compute.clear(tensor.view, stream);
    EXPECT_EQ(tensor.values(), Floats(kCount, 0.0F));
  }
}

TEST_F(StateOperations, ScalesByAValueOfTheDevice) {
  for (const DType dtype : kBoth) {
    const Tensor tensor(kCount, dtype, 1);
    const Floats before = tensor.values();
    const float factor = 2;
    compute.scale({.tensor = tensor.view, .factor = &factor}, stream);
    const Floats after = tensor.values();
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i], 2 * before[i]) << i;
  }
}

TEST_F(StateOperations, DividesByTheTokensOfAllRanks) {
  const std::vector<std::int64_t> tokens = {3, 0, 5};
  float factor = 0;
  compute.token_factor({.tokens = tokens.data(), .ranks = 3, .factor = &factor}, stream);
  EXPECT_EQ(factor, 0.125F);
  compute.token_factor({.tokens = &tokens[1], .ranks = 1, .factor = &factor}, stream);
  EXPECT_EQ(factor, 1);
}

TEST_F(StateOperations, SumsRanksInTheirOrderAndRoundsOnce) {
  // In fp32 2^24 + 1 + 1 is 2^24, and 1 + 1 + 2^24 is 2^24 + 2.
  const Tensor pieces({0x1p24F, 1, -7, 1, 1, -7, 1, 0x1p24F, -7}, DType::fp32);
  for (const bool joins : {false, true}) {
    for (const DType dtype : kBoth) {
      const Tensor sums(2, DType::fp32, 1);
      const Tensor shard({3, 3}, dtype);
      compute.sum_ranks({.pieces = pieces.view,
                         .stride = 3,
                         .ranks = 3,
                         .sums = sums.view,
                         .shard = shard.view,
                         .joins = joins},
                        stream);
      EXPECT_EQ(sums.values(), (Floats{0x1p24F, 0x1p24F + 2}));
      const Tensor expected(joins ? Floats{0x1p24F + 3, 0x1p24F + 5} : sums.values(), dtype);
      EXPECT_EQ(shard.values(), expected.values()) << name_of(dtype) << joins;
    }
  }
}

TEST_F(StateOperations, SquaresOfSeveralRanksHaveTheNormOfAllElements) {
  const auto bytes = static_cast<std::size_t>(compute.squares_bytes());
  std::vector<std::byte> all(2 * bytes);
  const Tensor wide(300'001, DType::fp32, 1);  // several parts
  const Tensor narrow(kCount, DType::bf16, 2);
  const Tensor other(7, DType::fp32, 3);
  const std::vector<ConstTensorView> mine = {wide.view, narrow.view};
  const std::vector<ConstTensorView> theirs = {other.view};
  compute.squares({.tensors = mine, .sums = all.data()}, stream);
  compute.squares({.tensors = theirs, .sums = all.data() + bytes}, stream);
  double norm = 0;
  float factor = 0;
  const auto take_norm = [&](double clip_norm) {
    compute.squares_norm({.sums = all.data(),
                          .ranks = 2,
                          .norm = &norm,
                          .clip_norm = clip_norm,
                          .clip_factor = &factor},
                         stream);
  };
  take_norm(0.5);
  ExactSquares expected;
  for (const Tensor* each : {&wide, &narrow, &other}) expected.add(each->values());
  EXPECT_EQ(norm, expected.norm());
  EXPECT_EQ(factor, static_cast<float>(0.5 / norm));
  take_norm(2 * norm);
  EXPECT_EQ(factor, 1);
  compute.squares({.tensors = mine, .sums = all.data(), .beside_others = true}, stream);
  const double before = norm;
  take_norm(0);
  EXPECT_EQ(norm, before);
  EXPECT_EQ(factor, 1);
}

TEST_F(StateOperations, AdamwUpdatesEachShardAndStoresWhatLayersRead) {
  AdamStep step = adam_step({}, 3);
  step.gradient_scale = 0.5F;
  step.decay = 0.75F;
  constexpr std::int64_t kMany = 140'003;  // two parts
  for (const DType dtype : kBoth) {
    const Tensor gradient(kMany + 3, dtype, 1);
    const Tensor main(kMany + 3, DType::fp32, 2);
    const Tensor exp_avg(kMany + 3, DType::fp32, 3);
    const Tensor exp_avg_sq(Floats(kMany + 3, 0.5F), DType::fp32);
    const Tensor stored(3, DType::bf16, 4);
    const Tensor its_main(main.values(), DType::fp32);
    const Tensor its_avg(exp_avg.values(), DType::fp32);
    const Tensor its_avg_sq(exp_avg_sq.values(), DType::fp32);
    const Floats wide = gradient.values();
    std::vector<AdamShard> shards;
    const auto add = [&](std::size_t begin, std::size_t count, bool decays) {
      const auto part = [&](const TensorView& all) { return all.part(begin, count); };
      shards.push_back({.gradient = part(gradient.view),
                        .main = part(main.view),
                        .exp_avg = part(exp_avg.view),
                        .exp_avg_sq = part(exp_avg_sq.view),
                        .decays = decays});
      adamw(step, decays ? step.decay : 1.0F, std::span(wide).subspan(begin, count),
            part(its_main.view).floats(), part(its_avg.view).floats(),
            part(its_avg_sq.view).floats());
    };
    add(0, kMany, true);
    add(kMany, 3, false);
    shards.back().stored = stored.view;
    compute.adamw({.shards = shards, .step = &step}, stream);
    EXPECT_EQ(main.bytes, its_main.bytes);
    EXPECT_EQ(exp_avg.bytes, its_avg.bytes);
    EXPECT_EQ(exp_avg_sq.bytes, its_avg_sq.bytes);
    const Floats updated = its_main.values();
    const Tensor rounded(Floats(updated.end() - 3, updated.end()), DType::bf16);
    EXPECT_EQ(stored.bytes, rounded.bytes);
  }
}

}  // namespace
}  // namespace shardwise::exec
