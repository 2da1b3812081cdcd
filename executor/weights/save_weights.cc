#include "executor/weights/save_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "executor/storage/durable_file.h"
#include "executor/storage/safetensors_set.h"
#include "executor/weights/config_json.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;  // floats of a message

/// Tensors of all units in the order of the model.
std::vector<TensorPlace> in_order(const StateUnits& units) {
  std::vector<TensorPlace> order;
  for (const std::vector<TensorPlace>& layer : units.places) {
    order.insert(order.end(), layer.begin(), layer.end());
  }
  return order;
}

/// Which elements of every unit every rank updates, [units][ranks].
std::vector<std::vector<ShardRange>> held_by_all(const RankState& state, const Arena& arena,
                                                 ControlGroup& everyone) {
  std::vector<std::vector<ShardRange>> all;
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const ShardRange mine = state.view(arena, 0, u).held;
    std::vector<ShardRange> ranks(static_cast<std::size_t>(everyone.size()));
    everyone.all_gather_bytes(std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span<ShardRange>(ranks)));
    all.push_back(std::move(ranks));
  }
  return all;
}

/// The lowest rank that holds element `at`, and how many from there on.
std::pair<int, std::int64_t> holder_of(const std::vector<ShardRange>& ranks, std::int64_t at) {
  const auto holds = [&](const ShardRange& held) {
    return held.begin <= at && at < held.begin + held.count;
  };
  const auto found = std::ranges::find_if(ranks, holds);
  SHARDWISE_CHECK(found != ranks.end(), fmt::format("element {} is nobody's", at));
  return {static_cast<int>(found - ranks.begin()), found->begin + found->count - at};
}

void write_numbers(SafetensorsSetWriter& writer, StoredType type, std::span<float> values) {
  if (type == StoredType::f32) return writer.write(std::as_bytes(values));
  std::vector<std::byte> narrow(values.size() * static_cast<std::size_t>(bytes_of(DType::bf16)));
  cast({narrow.data(), values.size(), DType::bf16}, values);
  writer.write(narrow);
}

}  // namespace

bool is_file_of_weights(const std::string& name) {
  return name == "config.json" ||
         (name.starts_with("model") &&
          (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")));
}

void save_weights(const RankState& state, const Arena& arena, Device& device,
                  const ModelSpec& model, ControlGroup& everyone, const SaveRules& rules) {
  const std::unique_ptr<DeviceStream> stream = device.stream(StreamPriority::normal);
  const StateUnits& units = state.units();
  const std::vector<TensorPlace> order = in_order(units);
  const std::vector<std::vector<ShardRange>> held = held_by_all(state, arena, everyone);
  std::optional<SafetensorsSetWriter> writer;
  if (everyone.rank() == 0) {
    std::vector<TensorSpec> tensors;
    for (const TensorPlace& place : order) {
      const UnitTensor& tensor = units.tensor(place);
      tensors.push_back({tensor.name, rules.type, tensor.shape});
    }
    writer.emplace(rules.folder, std::move(tensors), rules.most_bytes,
                   StoredMetadata{{"format", "pt"}});
  }
  std::vector<float> staged;
  for (const TensorPlace& place : order) {
    const UnitTensor& tensor = units.tensor(place);
    const RankState::View view = state.view(arena, 0, place.unit);
    const std::int64_t end = tensor.begin + tensor.filled;
    for (std::int64_t at = tensor.begin; at < end;) {
      const auto [owner, has] = holder_of(held[place.unit], at);
      const auto count = static_cast<std::size_t>(std::min({has, end - at, kPiece}));
      staged.resize(count);
      const std::span<float> piece(staged);
      if (owner == everyone.rank()) {
        const auto first = static_cast<std::size_t>(at - view.held.begin);
        RankState::download_main(view, first, piece, device, *stream);
      }
      if (owner != 0) everyone.broadcast(std::as_writable_bytes(piece), owner);
      if (writer) write_numbers(*writer, rules.type, piece);
      at += static_cast<std::int64_t>(count);
    }
  }
  if (!writer) return;
  writer->finish();
  DurableFile config(rules.folder / "config.json");
  config.write(config_json(model, rules.type));
  config.finish();
}

}  // namespace shardwise::exec
