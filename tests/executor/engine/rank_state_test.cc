// What a rank keeps of a unit, for placements worked out by hand. The unit has 10 elements, a
// matrix and a vector; three ranks share it by 4, 4 and 2, and two replicas each of these by 2.
#include "executor/engine/rank_state.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "executor/device/cpu/cpu_device.h"
#include "executor/kernels/element.h"

namespace shardwise::exec {
namespace {

constexpr StatePlacement kZero1 = {Placement::replicate, Placement::replicate,
                                   Placement::shard_inner};
constexpr StatePlacement kZero3 = {Placement::shard_inner, Placement::shard_inner,
                                   Placement::shard_inner};
constexpr StatePlacement kHfsdp = {Placement::shard_inner, Placement::shard_inner,
                                   Placement::shard_both};

StateUnits one_unit() {
  StateUnit unit;
  unit.elements = 10;
  unit.shard = 4;
  unit.outer_shard = 2;
  unit.tensors.resize(2);
  // The engine adds a row to a matrix of 2 x 2.
  unit.tensors[0] = {.name = "matrix.weight", .shape = {2, 2}, .elements = 6, .filled = 4};
  unit.tensors[1] = {
      .parameter = 1, .name = "norm.weight", .shape = {4}, .elements = 4, .filled = 4, .begin = 6};
  StateUnits units;
  units.units.push_back(unit);
  return units;
}

DataParallelPlace place_of(int shard_rank, int replica) {
  return {3, shard_rank, 2, replica, 6, replica * 3 + shard_rank};
}

/// Elements of the unit as they are read from elsewhere: 100 x the tensor and the element's number.
void read_numbers(const UnitTensor& tensor, std::int64_t first, std::span<float> values) {
  EXPECT_LE(first + std::ssize(values), tensor.filled) << tensor.name;
  std::iota(values.begin(), values.end(),
            static_cast<float>(std::int64_t{100} * tensor.parameter + first));
}

/// A rank with memory for all its state: five buffers of 64 bytes.
class Rank {
 public:
  Rank(const StatePlacement& placement, const DataParallelPlace& place,
       const StateTypes& types = {})
      : units_(one_unit()), state_(units_, placement, types, place, {{0, 1, 2, 3, 4}}) {
    StageProgram program;
    for (int buffer = 0; buffer < 5; ++buffer) {
      program.buffers.push_back({.bytes = 64, .resident = true});
    }
    arena_.place(program, memory_items(program));
    arena_.allocate(device_);
  }

  const RankState& state() const { return state_; }
  RankState::View view() const { return state_.view(arena_, 0, 0); }
  std::byte* buffer(std::size_t number) const { return arena_.at(0, number); }
  void fill() { state_.fill(arena_, 0, read_numbers, device_); }
  void update(const UnitUpdate& update, const AdamStep& step) {
    const std::unique_ptr<Compute> compute = device_.compute(1);
    DeviceStream stream;
    state_.update(std::span(&update, 1), &step, {*compute, stream});
  }

 private:
  StateUnits units_;
  RankState state_;
  CpuDevice device_;
  Arena arena_;
};

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(tensor.count);
  cast(values, tensor);
  return values;
}

void set(const TensorView& tensor, const std::vector<float>& values) { cast(tensor, values); }

TEST(RankState, ViewsTheShardThatItUpdatesInsideWhatIsWhole) {
  const Rank rank(kZero1, place_of(1, 0));
  const RankState::View v = rank.view();
  EXPECT_EQ(v.held.begin, 4);
  EXPECT_EQ(v.held.count, 4);
  EXPECT_EQ(v.weights.data, rank.buffer(0));
  EXPECT_EQ(v.weights.count, 10U);
  EXPECT_EQ(v.updated.data, rank.buffer(0) + 4 * sizeof(float));
  EXPECT_EQ(v.updated.count, 4U);
  EXPECT_EQ(v.main.data, v.updated.data);  // fp32: the weights themselves
  EXPECT_EQ(v.gradients.count, 10U);
  EXPECT_EQ(v.updated_gradient.data, rank.buffer(2) + 4 * sizeof(float));
  EXPECT_EQ(v.reduced.data, v.updated_gradient.data);  // a reduction leaves this rank's part
  EXPECT_EQ(v.reduced.count, 4U);
  EXPECT_EQ(v.exp_avg.data, rank.buffer(3));
  EXPECT_EQ(v.exp_avg.count, 4U);
  EXPECT_EQ(v.exp_avg_sq.data, rank.buffer(4));
}

TEST(RankState, ViewsThePartOfAShardThatItsReplicaUpdates) {
  const Rank rank(kHfsdp, place_of(1, 1));
  const RankState::View v = rank.view();
  EXPECT_EQ(v.held.begin, 6);
  EXPECT_EQ(v.held.count, 2);
  EXPECT_EQ(v.weights.count, 4U);
  EXPECT_EQ(v.updated.data, rank.buffer(0) + 2 * sizeof(float));
  EXPECT_EQ(v.updated_gradient.data, rank.buffer(2) + 2 * sizeof(float));
  EXPECT_EQ(v.updated_gradient.count, 2U);
  EXPECT_EQ(v.reduced.data, rank.buffer(2));  // of the inner axis: the whole shard
  EXPECT_EQ(v.reduced.count, 4U);
  EXPECT_EQ(v.exp_avg.count, 2U);
}

TEST(RankState, ViewsAShortLastShardAndMainWeights) {
  StateTypes types;
  types.weights = types.gradients = DType::bf16;
  types.main_weights = true;
  const Rank rank(kZero1, place_of(2, 0), types);
  const RankState::View v = rank.view();
  EXPECT_EQ(v.held.begin, 8);
  EXPECT_EQ(v.held.count, 2);
  EXPECT_EQ(v.updated.data, rank.buffer(0) + 8 * sizeof(Bf16));
  EXPECT_EQ(v.updated.dtype, DType::bf16);
  EXPECT_EQ(v.main.data, rank.buffer(1));
  EXPECT_EQ(v.main.count, 2U);
  EXPECT_EQ(v.main.dtype, DType::fp32);
}

TEST(RankState, FillsWhatItKeepsAndTheRowsOfAnEngineWithZeros) {
  Rank whole(kZero1, place_of(1, 0));
  whole.fill();
  EXPECT_EQ(floats_of(whole.view().weights),
            (std::vector<float>{0, 1, 2, 3, 0, 0, 100, 101, 102, 103}));
  Rank shard(kZero3, place_of(1, 0));
  shard.fill();
  EXPECT_EQ(floats_of(shard.view().weights), (std::vector<float>{0, 0, 100, 101}));
}

TEST(RankState, FillsMainWeightsByThePlacementOfTheOptimizer) {
  StateTypes types;
  types.weights = DType::bf16;
  types.main_weights = true;
  Rank rank(kHfsdp, place_of(1, 1), types);
  rank.fill();
  EXPECT_EQ(floats_of(rank.view().weights), (std::vector<float>{0, 0, 100, 101}));
  EXPECT_EQ(floats_of(rank.view().main), (std::vector<float>{100, 101}));
}

// Six ranks: one of them writes an element of a checkpoint, though several may hold it.
TEST(RankState, StandsForEveryElementOnceOverAllRanks) {
  for (const Placement optimizer :
       {Placement::replicate, Placement::shard_inner, Placement::shard_both}) {
    std::vector<int> written(10, 0);
    for (int replica = 0; replica < 2; ++replica) {
      for (int shard_rank = 0; shard_rank < 3; ++shard_rank) {
        const Rank rank({Placement::replicate, Placement::replicate, optimizer},
                        place_of(shard_rank, replica));
        const ShardRange own = rank.state().stands_for(0);
        for (std::int64_t i = own.begin; i < own.begin + own.count; ++i) {
          ++written[static_cast<std::size_t>(i)];
        }
      }
    }
    EXPECT_EQ(written, std::vector<int>(10, 1)) << static_cast<int>(optimizer);
  }
  // By hand: of the 4 elements from 4 on that two replicas update, the second's are the last 2.
  const ShardRange second = Rank(kZero1, place_of(1, 1)).state().stands_for(0);
  EXPECT_EQ(second.begin, 6);
  EXPECT_EQ(second.count, 2);
}

/// With beta1 1/2, beta2 0 and a rate of 1: a weight w becomes w x decay - (g / 2) / |g|.
AdamStep by_signs() {
  AdamStep step;
  step.learning_rate = 0.5F;
  step.moment_correction = 2;
  step.beta1 = 0.5F;
  step.decay = 0.75F;
  return step;
}

/// Where weights are fp32 themselves.
UnitUpdate update_of(const RankState::View& v) {
  UnitUpdate update;
  update.gradients = v.updated_gradient;
  update.weights = v.updated;
  update.exp_avg = v.exp_avg;
  update.exp_avg_sq = v.exp_avg_sq;
  return update;
}

// Of the shard two elements are the matrix's, which decay, and two the vector's.
TEST(RankState, UpdatesItsShardAndDecaysMatricesOnly) {
  Rank rank(kZero3, place_of(1, 0));
  const RankState::View v = rank.view();
  set(v.weights, {8, 8, 8, 8});
  set(v.gradients, {2, 4, 2, -2});
  rank.update(update_of(v), by_signs());
  EXPECT_EQ(floats_of(v.weights), (std::vector<float>{5.5F, 5.5F, 7.5F, 8.5F}));
  EXPECT_EQ(floats_of(v.exp_avg), (std::vector<float>{1, 2, 1, -1}));
  EXPECT_EQ(floats_of(v.exp_avg_sq), (std::vector<float>{4, 16, 4, 4}));
}

// Gradients of bf16 are widened, the fp32 weights are updated, and what is kept beside them is
// their nearest bf16: 1025 is no bf16, and between 1024 and 1032.
TEST(RankState, UpdatesMainWeightsAndStoresThemRounded) {
  StateTypes types;
  types.weights = types.gradients = DType::bf16;
  types.main_weights = true;
  Rank rank(kZero3, place_of(2, 0), types);
  const RankState::View v = rank.view();
  set(v.main, {1025.5F, 3});
  set(v.gradients, {2, -2});
  std::vector<float> wide(2);
  UnitUpdate update = update_of(v);
  update.wide_gradients = wide;
  update.main = v.main;
  rank.update(update, by_signs());
  EXPECT_EQ(wide, (std::vector<float>{2, -2}));
  EXPECT_EQ(floats_of(v.main), (std::vector<float>{1025, 3.5F}));
  EXPECT_EQ(floats_of(v.weights), (std::vector<float>{1024, 3.5F}));
}

}  // namespace
}  // namespace shardwise::exec
