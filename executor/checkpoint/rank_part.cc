#include "executor/checkpoint/rank_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "executor/storage/safetensors_writer.h"
#include "planner/lowering/operands/model_units.h"

namespace shardwise::exec {

std::string stored_name(std::size_t state, const std::string& tensor) {
  return fmt::format("{}/{}", kSavedStateNames[state], tensor);
}

std::vector<SavedTensor> saved_tensors(const Plan& plan) {
  const ModelUnits model = model_units(lowering_context(plan, Granularity::layer, false));
  std::vector<SavedTensor> tensors;
  for (const ModelUnits::Place& place : model.tensors) {
    const UnitTensor& tensor = model.tensor(place);
    tensors.push_back({tensor.name, tensor.shape, tensor.cut});
  }
  return tensors;
}

RankPart copy_rank_part(const RankState& state, const Arena& arena, Device& device) {
  const std::unique_ptr<DeviceStream> stream = device.stream(StreamPriority::normal);
  const DataParallelPlace& place = state.place();
  RankPart part;
  std::int64_t elements = 0;
  for (std::size_t u = 0; u < state.units().units.size(); ++u)
    elements += state.stands_for(u).count;
  for (std::vector<float>& values : part.values) values.reserve(static_cast<std::size_t>(elements));
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const ShardRange own = state.stands_for(u);
    const RankState::View view = state.view(arena, 0, u);
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      const std::int64_t begin = std::max(tensor.begin, own.begin);
      const std::int64_t end =
          std::min(tensor.begin + filled_of(tensor, place), own.begin + own.count);
      const bool cut = tensor.cut.cut();
      const bool others = tensor.copy || !tensor.cut.leads(place.tp_rank);
      if (begin >= end || others) continue;
      part.slices.push_back({tensor.name,
                             begin - tensor.begin,
                             end - begin,
                             {},
                             cut ? std::int64_t{tensor.cut.part_of(place.tp_rank)} : kWholeTensor});
      const auto first = static_cast<std::size_t>(begin - view.held.begin);
      const auto count = static_cast<std::size_t>(end - begin);
      const auto more = [&](SavedState saved) {
        std::vector<float>& values = part.values[static_cast<std::size_t>(saved)];
        values.resize(values.size() + count);
        return std::span(values).last(count);
      };
      RankState::download_main(view, first, more(SavedState::weights), device, *stream);
      device.download(std::as_writable_bytes(more(SavedState::first_moment)),
                      view.exp_avg.part(first, count).data, *stream);
      RankState::download_exp_avg_sq(view, first, more(SavedState::second_moment), device, *stream);
    }
  }
  return part;
}

SavedFile write_rank_part(const std::filesystem::path& folder, int rank, const RankPart& part) {
  SavedFile file;
  file.name = fmt::format("rank-{:05}.safetensors", rank);
  file.slices = part.slices;
  std::vector<TensorSpec> tensors;
  for (std::size_t s = 0; s < kSavedStates; ++s) {
    for (const SavedSlice& slice : part.slices) {
      tensors.push_back({stored_name(s, slice.tensor), StoredType::f32, {slice.count}});
    }
  }
  SafetensorsWriter writer(folder / file.name, tensors);
  for (std::size_t s = 0; s < kSavedStates; ++s) {
    std::span<const float> values = part.values[s];
    for (SavedSlice& slice : file.slices) {
      const auto count = static_cast<std::size_t>(slice.count);
      const std::span<const std::byte> bytes = std::as_bytes(values.first(count));
      slice.crc32[s] = crc32_of(0, bytes);
      writer.write(bytes);
      values = values.subspan(count);
    }
  }
  writer.finish();
  file.bytes = writer.bytes();
  file.crc32 = writer.crc32();
  return file;
}

}  // namespace shardwise::exec
