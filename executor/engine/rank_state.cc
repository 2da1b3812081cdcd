#include "executor/engine/rank_state.h"

#include <algorithm>

#include "executor/comm/communicator.h"
#include "executor/data/random.h"
#include "planner/spec/check.h"
#include "planner/spec/units.h"

namespace shardwise::exec {
namespace {

constexpr float kDeviation = 0.02F;  // of weights, as the configurations of GPT-2 and Llama have it

std::span<float> floats(std::byte* at, std::int64_t count) {
  return {reinterpret_cast<float*>(at), static_cast<std::size_t>(count)};
}

std::span<float> part(std::span<float> whole, std::int64_t begin, std::int64_t count) {
  return whole.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

/// What a tensor begins as.
enum class Start : std::uint8_t { zeros, ones, normal, scaled_normal };

Start start_of(const UnitTensor& tensor) {
  if (tensor.name.ends_with(".bias")) return Start::zeros;
  if (tensor.shape.size() < 2) return Start::ones;
  for (const char* output : {"o_proj.weight", "down_proj.weight", "c_proj.weight"}) {
    if (tensor.name.ends_with(output)) return Start::scaled_normal;
  }
  return Start::normal;
}

/// Where a tensor and a range of its unit meet.
struct Meet {
  std::int64_t begin = 0;  // in the unit
  std::int64_t end = 0;
};
Meet meet(const UnitTensor& tensor, const Held& held) {
  return {std::max(tensor.begin, held.begin),
          std::min(tensor.begin + tensor.elements, held.begin + held.count)};
}

}  // namespace

RankState::RankState(const StateUnits& units, const StatePlacement& placement,
                     const DataParallelPlace& place, bool late_gradients)
    : units_(units), placement_(placement), place_(place), late_gradients_(late_gradients) {
  SHARDWISE_CHECK(placement.optimizer != Placement::shard_both, "a state over both axes");
}

std::int64_t RankState::shard(std::size_t unit) const {
  return shard_of(units_.units[unit], place_.shard_ranks);
}

/// Elements that a rank has room for: padded where they are sharded.
std::int64_t RankState::kept(std::size_t unit, Placement placement) const {
  return placement == Placement::replicate ? units_.units[unit].elements : shard(unit);
}

Held RankState::held(std::size_t unit, Placement placement) const {
  const std::int64_t all = units_.units[unit].elements;
  if (placement == Placement::replicate) return {0, all};
  const Piece piece = piece_of(all, shard(unit), place_.shard_rank);
  return {static_cast<std::int64_t>(piece.begin), static_cast<std::int64_t>(piece.count)};
}

void RankState::add_items(MemoryItems& items) {
  constexpr std::int64_t kBytes = sizeof(float);
  const std::size_t n = units_.units.size();
  weights_.resize(n);
  gradients_.resize(n);
  first_.resize(n);
  second_.resize(n);
  for (std::size_t u = 0; u < n; ++u) {
    weights_[u] = items.resident(MemoryCategory::weights, kBytes * kept(u, placement_.parameters));
    first_[u] =
        items.resident(MemoryCategory::optimizer_moments, kBytes * kept(u, placement_.optimizer));
    second_[u] =
        items.resident(MemoryCategory::optimizer_moments, kBytes * kept(u, placement_.optimizer));
    if (late_gradients_) continue;
    gradients_[u] =
        items.resident(MemoryCategory::gradients, kBytes * kept(u, placement_.gradients));
  }
  if (!late_gradients_) return;
  for (std::size_t u = 0; u < n; ++u) {
    gradients_[u] = items.item(MemoryCategory::gradients, kBytes * kept(u, placement_.gradients));
  }
}

RankState::View RankState::view(const Arena& arena, std::size_t program, std::size_t unit) const {
  const Held parameters = held(unit, placement_.parameters);
  const Held gradients = held(unit, placement_.gradients);
  View v;
  v.held = held(unit, placement_.optimizer);
  v.weights = floats(arena.at(program, weights_[unit]), parameters.count);
  v.gradients = floats(arena.at(program, gradients_[unit]), gradients.count);
  v.first = floats(arena.at(program, first_[unit]), v.held.count);
  v.second = floats(arena.at(program, second_[unit]), v.held.count);
  v.updated = part(v.weights, v.held.begin - parameters.begin, v.held.count);
  v.updated_gradient = part(v.gradients, v.held.begin - gradients.begin, v.held.count);
  return v;
}

void RankState::initialise(const Arena& arena, std::size_t program, std::uint64_t seed,
                           double output_deviation_scale) const {
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const Held own = held(u, placement_.parameters);
    const std::span<float> weights = view(arena, program, u).weights;
    for (const UnitTensor& tensor : units_.units[u].tensors) {
      const Meet range = meet(tensor, own);
      const Start start = start_of(tensor);
      const std::uint64_t stream = seed_of(seed, tensor.name);
      const float deviation =
          kDeviation *
          (start == Start::scaled_normal ? static_cast<float>(output_deviation_scale) : 1.0F);
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const std::int64_t element = i - tensor.begin;
        float value = start == Start::ones ? 1.0F : 0.0F;
        const bool drawn = start == Start::normal || start == Start::scaled_normal;
        if (drawn && element < tensor.filled) {
          value = deviation * random_normal(stream, static_cast<std::uint64_t>(element));
        }
        weights[static_cast<std::size_t>(i - own.begin)] = value;
      }
    }
  }
}

ExactSquares RankState::squares(const Arena& arena, std::size_t program) const {
  ExactSquares sum;
  // Replicas hold the same gradients: one of them counts; whole gradients are shared out.
  const bool whole = placement_.optimizer == Placement::replicate;
  if (!whole && place_.replica > 0) return sum;
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    std::span<const float> gradients = view(arena, program, u).updated_gradient;
    if (whole) {
      const std::int64_t all = std::ssize(gradients);
      const Piece piece = piece_of(all, ceil_div(all, place_.world), place_.world_rank);
      gradients = gradients.subspan(piece.begin, piece.count);
    }
    sum.add(gradients);
  }
  return sum;
}

void RankState::update(const Arena& arena, std::size_t program, const AdamStep& step,
                       const OptimizerRules& rules) const {
  const float decay = 1 - step.learning_rate * static_cast<float>(rules.weight_decay);
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const View v = view(arena, program, u);
    for (const UnitTensor& tensor : units_.units[u].tensors) {
      const Meet range = meet(tensor, v.held);
      if (range.begin >= range.end) continue;
      const std::int64_t at = range.begin - v.held.begin;
      const std::int64_t count = range.end - range.begin;
      adamw(step, tensor.shape.size() >= 2 ? decay : 1.0F, part(v.updated_gradient, at, count),
            part(v.updated, at, count), part(v.first, at, count), part(v.second, at, count));
    }
  }
}

}  // namespace shardwise::exec
