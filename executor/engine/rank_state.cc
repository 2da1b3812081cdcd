#include "executor/engine/rank_state.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "executor/comm/communicator.h"
#include "executor/data/random.h"
#include "planner/spec/check.h"
#include "planner/spec/units.h"

namespace shardwise::exec {
namespace {

constexpr float kDeviation = 0.02F;  // of weights, as the configurations of GPT-2 and Llama have it

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

/// Calls part(begin, count) for parts of `all` elements, some on each thread.
template <class Part>
void for_parts(std::size_t all, Workers& workers, Part part) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  workers.run(static_cast<std::int64_t>((all + kPart - 1) / kPart), [&](std::int64_t task) {
    const std::size_t begin = static_cast<std::size_t>(task) * kPart;
    part(begin, std::min(kPart, all - begin));
  });
}

}  // namespace

RankState::RankState(const StateUnits& units, const StatePlacement& placement,
                     const StateTypes& types, const DataParallelPlace& place, bool late_gradients)
    : units_(units),
      placement_(placement),
      types_(types),
      place_(place),
      late_gradients_(late_gradients) {}

std::int64_t RankState::shard(std::size_t unit, Placement placement) const {
  const StateUnit& own = units_.units[unit];
  switch (placement) {
    case Placement::replicate:
      return own.elements;
    case Placement::shard_inner:
      return own.shard;
    case Placement::shard_both:
      return own.outer_shard;
  }
  return 0;
}

Held RankState::held(std::size_t unit, Placement placement) const {
  const std::int64_t all = units_.units[unit].elements;
  if (placement == Placement::replicate) return {0, all};
  const auto part = [&](const Held& whole, Placement shards, int rank) -> Held {
    const Piece piece = piece_of(whole.count, shard(unit, shards), rank);
    return {whole.begin + static_cast<std::int64_t>(piece.begin),
            static_cast<std::int64_t>(piece.count)};
  };
  const Held inner = part({0, all}, Placement::shard_inner, place_.shard_rank);
  return placement == Placement::shard_inner ? inner : part(inner, placement, place_.replica);
}

void RankState::add_items(MemoryItems& items) {
  using enum MemoryCategory;
  const std::size_t n = units_.units.size();
  const auto bytes = [&](std::size_t u, Placement placement, DType dtype) {
    return shard(u, placement) * bytes_of(dtype);
  };
  weights_.resize(n);
  main_.assign(n, kNoItem);
  gradients_.resize(n);
  first_.resize(n);
  second_.resize(n);
  for (std::size_t u = 0; u < n; ++u) {
    const std::int64_t wide = bytes(u, placement_.optimizer, DType::fp32);
    weights_[u] = items.resident(types_.weights_are_main ? main_weights : weights,
                                 bytes(u, placement_.parameters, types_.weights));
    if (types_.main_weights) main_[u] = items.resident(main_weights, wide);
    first_[u] = items.resident(optimizer_moments, wide);
    second_[u] = items.resident(optimizer_moments, wide);
    if (late_gradients_) continue;
    gradients_[u] = items.resident(gradients, bytes(u, placement_.gradients, types_.gradients));
  }
  if (!late_gradients_) return;
  for (std::size_t u = 0; u < n; ++u) {
    gradients_[u] = items.item(gradients, bytes(u, placement_.gradients, types_.gradients));
  }
}

RankState::View RankState::view(const Arena& arena, std::size_t program, std::size_t unit) const {
  const Held parameters = held(unit, placement_.parameters);
  const Held gradients = held(unit, placement_.gradients);
  const auto at = [&](ItemId item) { return arena.at(program, item); };
  View v;
  v.held = held(unit, placement_.optimizer);
  const auto count = static_cast<std::size_t>(v.held.count);
  const auto part = [&](const Numbers& whole, const Held& of) {
    return whole.part(static_cast<std::size_t>(v.held.begin - of.begin), count);
  };
  v.weights = {at(weights_[unit]), static_cast<std::size_t>(parameters.count), types_.weights};
  v.gradients = {at(gradients_[unit]), static_cast<std::size_t>(gradients.count), types_.gradients};
  v.first = Numbers(at(first_[unit]), count, DType::fp32).floats();
  v.second = Numbers(at(second_[unit]), count, DType::fp32).floats();
  v.updated = part(v.weights, parameters);
  v.updated_gradient = part(v.gradients, gradients);
  v.reduced = placement_.gradients == Placement::replicate ? v.updated_gradient : v.gradients;
  v.main = types_.main_weights ? Numbers(at(main_[unit]), count, DType::fp32).floats()
                               : v.updated.floats();
  return v;
}

void RankState::fill_part(const Numbers& weights, std::size_t unit, const Held& held,
                          const WeightSource& source) const {
  constexpr std::int64_t kBlock = 16384;
  std::vector<float> block;
  for (const UnitTensor& tensor : units_.units[unit].tensors) {
    const Meet range = meet(tensor, held);
    for (std::int64_t i = range.begin; i < range.end; i += kBlock) {
      const std::int64_t first = i - tensor.begin;
      block.assign(static_cast<std::size_t>(std::min(range.end - i, kBlock)), 0.0F);
      const auto filled = std::clamp<std::int64_t>(tensor.filled - first, 0, std::ssize(block));
      const std::span<float> values(block);
      if (filled > 0) source(tensor, first, values.first(static_cast<std::size_t>(filled)));
      copy_numbers(weights.part(static_cast<std::size_t>(i - held.begin), values.size()), values);
    }
  }
}

void RankState::fill(const Arena& arena, std::size_t program, const WeightSource& source) const {
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const View v = view(arena, program, u);
    fill_part(v.weights, u, held(u, placement_.parameters), source);
    if (types_.main_weights) fill_part(v.main, u, v.held, source);
  }
}

WeightSource drawn_weights(std::uint64_t seed, double output_deviation_scale) {
  return [=](const UnitTensor& tensor, std::int64_t first, std::span<float> values) {
    const Start start = start_of(tensor);
    const std::uint64_t stream = seed_of(seed, tensor.name);
    const float deviation =
        kDeviation *
        (start == Start::scaled_normal ? static_cast<float>(output_deviation_scale) : 1.0F);
    const bool drawn = start == Start::normal || start == Start::scaled_normal;
    auto element = static_cast<std::uint64_t>(first);
    for (float& value : values) {
      value = start == Start::ones ? 1.0F : 0.0F;
      if (drawn) value = deviation * random_normal(stream, element);
      ++element;
    }
  };
}

/// Ranks that update the same elements share them out.
Held RankState::stands_for(std::size_t unit) const {
  const Held own = held(unit, placement_.optimizer);
  if (placement_.optimizer == Placement::shard_both) return own;
  const bool whole = placement_.optimizer == Placement::replicate;
  const Piece piece =
      whole ? piece_of(own.count, ceil_div(own.count, place_.world), place_.world_rank)
            : piece_of(own.count, ceil_div(own.count, place_.replicas), place_.replica);
  return {own.begin + static_cast<std::int64_t>(piece.begin),
          static_cast<std::int64_t>(piece.count)};
}

ExactSquares RankState::squares(const Arena& arena, std::size_t program, Workers& workers) const {
  ExactSquares sum;
  std::mutex mutex;
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const View v = view(arena, program, u);
    const Held own = stands_for(u);
    const ConstNumbers gradients = v.updated_gradient.part(
        static_cast<std::size_t>(own.begin - v.held.begin), static_cast<std::size_t>(own.count));
    // The sum is exact: it does not matter who adds what first.
    for_parts(gradients.count, workers, [&](std::size_t begin, std::size_t count) {
      ExactSquares part;
      for_blocks(gradients.part(begin, count),
                 [&](std::size_t, std::span<const float> block) { part.add(block); });
      const std::lock_guard<std::mutex> lock(mutex);
      sum.add(part);
    });
  }
  return sum;
}

void RankState::update(const Arena& arena, std::size_t program, const AdamStep& step,
                       const OptimizerRules& rules, std::span<float> casts,
                       Workers& workers) const {
  const float decay = 1 - step.learning_rate * static_cast<float>(rules.weight_decay);
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const View v = view(arena, program, u);
    ConstNumbers gradients = v.updated_gradient;
    if (!casts.empty()) {
      copy_numbers(casts.first(gradients.count), gradients);
      gradients = casts.first(gradients.count);
      casts = casts.subspan(static_cast<std::size_t>(shard(u, placement_.optimizer)));
    }
    for (const UnitTensor& tensor : units_.units[u].tensors) {
      const Meet range = meet(tensor, v.held);
      if (range.begin >= range.end) continue;
      const auto at = static_cast<std::size_t>(range.begin - v.held.begin);
      const auto count = static_cast<std::size_t>(range.end - range.begin);
      for_parts(count, workers, [&](std::size_t begin, std::size_t size) {
        const ConstNumbers some = gradients.part(at + begin, size);
        for_blocks(some, [&](std::size_t from, std::span<const float> block) {
          const auto part = [&](std::span<float> all) {
            return all.subspan(at + begin + from, block.size());
          };
          adamw(step, tensor.shape.size() >= 2 ? decay : 1.0F, block, part(v.main), part(v.first),
                part(v.second));
        });
      });
    }
    if (types_.main_weights) copy_numbers(v.updated, v.main);
  }
}

std::int64_t RankState::updated_elements() const {
  std::int64_t sum = 0;
  for (std::size_t u = 0; u < units_.units.size(); ++u) sum += shard(u, placement_.optimizer);
  return sum;
}

}  // namespace shardwise::exec
