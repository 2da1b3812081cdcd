#include "executor/engine/rank_state.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/data/random.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

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

/// Where a tensor of a unit, with the zeros behind it, and a range of the unit meet.
struct Meet {
  std::int64_t begin = 0;  // in the unit
  std::int64_t end = 0;
};
Meet meet(const StateUnit& unit, std::size_t tensor, const ShardRange& held) {
  const bool last = tensor + 1 == unit.tensors.size();
  const std::int64_t end = last ? unit.elements : unit.tensors[tensor + 1].begin;
  return {std::max(unit.tensors[tensor].begin, held.begin), std::min(end, held.begin + held.count)};
}

/// Numbers that a thread draws or rounds at a time.
constexpr std::int64_t kTask = std::int64_t{1} << 15;

/// upload_numbers(), rounded by several threads.
void upload_run(const TensorView& to, std::span<const float> values, Workers& workers,
                Device& device, DeviceStream& stream) {
  if (to.dtype == DType::fp32) return upload_numbers(to, values, device, stream);
  std::vector<std::byte> rounded(to.bytes());
  const TensorView whole(rounded.data(), to.count, to.dtype);
  const std::int64_t count = std::ssize(values);
  workers.run(ceil_div(count, kTask), [&](std::int64_t task) {
    const auto first = static_cast<std::size_t>(task * kTask);
    const auto length = static_cast<std::size_t>(std::min(kTask, count - task * kTask));
    cast(whole.part(first, length), values.subspan(first, length));
  });
  device.upload(to.data, rounded, stream);
}

}  // namespace

void read_part(const WeightSource& source, const UnitTensor& tensor, int tp_rank,
               std::int64_t first, std::span<float> values) {
  if (!tensor.cut.cut()) return source(tensor, first, values);
  const int own = tensor.cut.part_of(tp_rank);
  for_slice_runs(tensor.cut, own, first, std::ssize(values), [&](const SliceRun& run) {
    const auto part = values.subspan(static_cast<std::size_t>(run.part - first),
                                     static_cast<std::size_t>(run.count));
    if (run.whole < 0) {
      std::ranges::fill(part, 0.0F);
    } else {
      source(tensor, run.whole, part);
    }
  });
}

void upload_numbers(const TensorView& to, std::span<const float> values, Device& device,
                    DeviceStream& stream) {
  if (to.dtype == DType::fp32) return device.upload(to.data, std::as_bytes(values), stream);
  std::vector<std::byte> staged(to.bytes());
  cast({staged.data(), to.count, to.dtype}, values);
  device.upload(to.data, staged, stream);
}

RankState::RankState(const StateUnits& units, const StatePlacement& placement,
                     const StateTypes& types, const DataParallelPlace& place,
                     const std::vector<UnitBuffers>& buffers)
    : units_(units), placement_(placement), types_(types), place_(place), buffers_(buffers) {}

RankState::View RankState::view(const Arena& arena, std::size_t program, std::size_t unit) const {
  const ShardRange parameters = held(unit, placement_.parameters);
  const ShardRange gradients = held(unit, placement_.gradients);
  const UnitBuffers& own = buffers_[unit];
  const auto at = [&](std::uint32_t buffer) { return arena.at(program, buffer); };
  View v;
  v.held = held(unit, placement_.optimizer);
  const auto count = static_cast<std::size_t>(v.held.count);
  const auto part = [&](const TensorView& whole, const ShardRange& of) {
    return whole.part(static_cast<std::size_t>(v.held.begin - of.begin), count);
  };
  v.weights = {at(own.weights), static_cast<std::size_t>(parameters.count), types_.weights};
  v.gradients = {at(own.gradients), static_cast<std::size_t>(gradients.count), types_.gradients};
  v.exp_avg = {at(own.first_moments), count, DType::fp32};
  v.exp_avg_sq = {at(own.second_moments), count, DType::fp32};
  v.updated = part(v.weights, parameters);
  v.updated_gradient = part(v.gradients, gradients);
  v.reduced = placement_.gradients == Placement::replicate ? v.updated_gradient : v.gradients;
  if (types_.remainders) {
    v.remainders = {reinterpret_cast<std::uint16_t*>(at(own.main_weights)), count};
  } else {
    v.main = types_.main_weights ? TensorView(at(own.main_weights), count, DType::fp32) : v.updated;
  }
  return v;
}

void RankState::download_main(const View& view, std::size_t first, std::span<float> main,
                              Device& device, DeviceStream& stream) {
  const auto download = [&](auto& to, const std::byte* from) {
    device.download(std::as_writable_bytes(std::span(to)), from, stream);
  };
  const bool halves = !view.remainders.empty();
  if (!halves && view.main.dtype == DType::fp32) {
    return download(main, view.main.part(first, main.size()).data);
  }
  std::vector<Bf16> weights(main.size());
  download(weights, view.updated.part(first, main.size()).data);
  if (!halves) {
    return cast(main,
                {reinterpret_cast<const std::byte*>(weights.data()), main.size(), DType::bf16});
  }
  std::vector<std::uint16_t> remainders(main.size());
  std::vector<float> exp_avg_sq(main.size());
  download(remainders, reinterpret_cast<const std::byte*>(view.remainders.data() + first));
  download(exp_avg_sq, view.exp_avg_sq.part(first, main.size()).data);
  join_weights(weights, remainders, exp_avg_sq, main);
}

void RankState::download_exp_avg_sq(const View& view, std::size_t first,
                                    std::span<float> exp_avg_sq, Device& device,
                                    DeviceStream& stream) {
  device.download(std::as_writable_bytes(exp_avg_sq),
                  view.exp_avg_sq.part(first, exp_avg_sq.size()).data, stream);
  if (!view.remainders.empty()) clear_signs(exp_avg_sq);
}

void RankState::upload(const View& view, std::size_t first, std::span<const float> main,
                       std::span<const float> exp_avg_sq, Device& device, DeviceStream& stream) {
  const TensorView squares = view.exp_avg_sq.part(first, exp_avg_sq.size());
  if (view.remainders.empty()) {
    upload_numbers(view.main.part(first, main.size()), main, device, stream);
    return upload_numbers(squares, exp_avg_sq, device, stream);
  }
  std::vector<std::uint16_t> remainders(main.size());
  std::vector<float> signed_squares(exp_avg_sq.begin(), exp_avg_sq.end());
  split_weights(main, remainders, signed_squares);
  device.upload(reinterpret_cast<std::byte*>(view.remainders.data() + first),
                std::as_bytes(std::span(remainders)), stream);
  upload_numbers(squares, signed_squares, device, stream);
}

template <class Put>
void RankState::for_runs(std::size_t unit, const ShardRange& range, const WeightSource& source,
                         Workers& workers, Put put) const {
  constexpr std::int64_t kRun = std::int64_t{1} << 22;
  std::vector<float> run;
  const StateUnit& of = units_.units[unit];
  for (std::size_t t = 0; t < of.tensors.size(); ++t) {
    const UnitTensor& tensor = of.tensors[t];
    const Meet both = meet(of, t, range);
    for (std::int64_t i = both.begin; i < both.end; i += kRun) {
      const std::int64_t first = i - tensor.begin;
      run.assign(static_cast<std::size_t>(std::min(both.end - i, kRun)), 0.0F);
      // Behind a rank's part of a tensor are zeros, as behind all of it.
      const std::int64_t own = filled_of(tensor, place_);
      const auto filled = std::clamp<std::int64_t>(own - first, 0, std::ssize(run));
      std::vector<std::exception_ptr> failed(static_cast<std::size_t>(ceil_div(filled, kTask)));
      workers.run(std::ssize(failed), [&](std::int64_t task) {
        const std::int64_t at = task * kTask;
        const std::span<float> values(run.data() + at,
                                      static_cast<std::size_t>(std::min(filled - at, kTask)));
        try {
          read_part(source, tensor, place_.tp_rank, first + at, values);
        } catch (...) {
          failed[static_cast<std::size_t>(task)] = std::current_exception();
        }
      });
      for (const std::exception_ptr& each : failed) {
        if (each) std::rethrow_exception(each);
      }
      put(i, std::span<const float>(run));
    }
  }
}

void RankState::fill(const Arena& arena, std::size_t program, const WeightSource& source,
                     Device& device) const {
  constexpr int kMostThreads = 16;
  Workers workers(std::min(kMostThreads, processors_of_thread()));
  const std::unique_ptr<DeviceStream> stream = device.stream(StreamPriority::normal);
  for (std::size_t u = 0; u < units_.units.size(); ++u) {
    const View v = view(arena, program, u);
    const ShardRange kept = keeps(u);
    for_runs(u, kept, source, workers, [&](std::int64_t first, std::span<const float> values) {
      const TensorView to =
          v.weights.part(static_cast<std::size_t>(first - kept.begin), values.size());
      upload_run(to, values, workers, device, *stream);
      const std::int64_t begin = std::max(first, v.held.begin);
      const std::int64_t end = std::min(first + std::ssize(values), v.held.begin + v.held.count);
      if (!types_.main_weights || begin >= end) return;
      const auto at = static_cast<std::size_t>(begin - v.held.begin);
      const auto main = values.subspan(static_cast<std::size_t>(begin - first),
                                       static_cast<std::size_t>(end - begin));
      if (v.remainders.empty()) {
        return upload_numbers(v.main.part(at, main.size()), main, device, *stream);
      }
      upload(v, at, main, std::vector<float>(main.size()), device, *stream);
    });
  }
  device.synchronize(*stream);
}

WeightSource drawn_weights(std::uint64_t seed, double output_deviation_scale) {
  return [=](const UnitTensor& tensor, std::int64_t first, std::span<float> values) {
    const Start start = start_of(tensor);
    const std::uint64_t stream = seed_of(seed, tensor.name);
    const float deviation =
        kDeviation *
        (start == Start::scaled_normal ? static_cast<float>(output_deviation_scale) : 1.0F);
    if (start == Start::zeros || start == Start::ones) {
      std::ranges::fill(values, start == Start::ones ? 1.0F : 0.0F);
      return;
    }
    random_normals(stream, static_cast<std::uint64_t>(first), values);
    for (float& value : values) value *= deviation;
  };
}

void RankState::update(std::span<const UnitUpdate> updates, const AdamStep* step,
                       const Issue& to) const {
  std::vector<AdamShard> shards;
  for (const UnitUpdate& update : updates) {
    const ShardRange own = held(update.unit, placement_.optimizer);
    const TensorView& main = types_.main_weights ? update.main : update.weights;
    ConstTensorView gradients = update.gradients;
    if (update.wide_gradients.count > 0) {
      to.compute.cast(update.wide_gradients, gradients, to.stream);
      gradients = update.wide_gradients;
    }
    const StateUnit& unit = units_.units[update.unit];
    for (std::size_t t = 0; t < unit.tensors.size(); ++t) {
      const UnitTensor& tensor = unit.tensors[t];
      const Meet range = meet(unit, t, own);
      if (range.begin >= range.end) continue;
      // `part` and `whole`: the first element's numbers in this rank's part and in the tensor.
      const auto add = [&](std::int64_t part, std::int64_t whole, std::int64_t elements) {
        const auto at = static_cast<std::size_t>(tensor.begin + part - own.begin);
        const auto count = static_cast<std::size_t>(elements);
        shards.push_back(
            {.gradient = gradients.part(at, count),
             .main = types_.remainders ? TensorView() : main.part(at, count),
             .exp_avg = update.exp_avg.part(at, count),
             .exp_avg_sq = update.exp_avg_sq.part(at, count),
             .stored = types_.main_weights ? update.weights.part(at, count) : TensorView(),
             .remainders = types_.remainders ? update.remainders.subspan(at, count)
                                             : std::span<std::uint16_t>(),
             .tensor = seed_of(0, tensor.name),
             .first = static_cast<std::uint64_t>(whole),
             .decays = tensor.shape.size() >= 2});
      };
      const std::int64_t first = range.begin - tensor.begin;
      const std::int64_t all = range.end - range.begin;
      // Weights that are rounded stochastically are rounded by their numbers in the whole tensor.
      const bool rounds = !types_.main_weights && types_.weights == DType::bf16;
      if (!rounds || !tensor.cut.cut()) {
        add(first, first, all);
        continue;
      }
      const std::int64_t own_part = std::min(all, tensor.elements - first);
      for_slice_runs(tensor.cut, tensor.cut.part_of(place_.tp_rank), first, own_part,
                     [&](const SliceRun& run) {
                       if (run.whole >= 0) add(run.part, run.whole, run.count);
                     });
    }
  }
  to.compute.adamw({.shards = shards, .step = step}, to.stream);
}

}  // namespace shardwise::exec
