#include "executor/weights/save_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/engine/rank_place.h"
#include "executor/storage/durable_file.h"
#include "executor/storage/safetensors_set.h"
#include "executor/weights/config_json.h"
#include "planner/lowering/operands/model_units.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;  // floats of a message

/// Where a rank stands in the mesh.
struct MeshPlace {
  std::size_t stage = 0;
  DataParallelPlace own;
};
std::vector<MeshPlace> mesh_of(const Layout& layout) {
  std::vector<MeshPlace> mesh;
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
    mesh.push_back({static_cast<std::size_t>(stage_of(layout, rank)), place_of(layout, rank)});
  }
  return mesh;
}

/// The lowest rank of a stage that updates element `at` of a unit, and how many from there on.
std::pair<int, std::int64_t> holder_of(const std::vector<MeshPlace>& mesh, std::size_t stage,
                                       const StateUnit& unit, Placement optimizer,
                                       std::int64_t at) {
  const auto holds = [&](const MeshPlace& place) {
    const ShardRange held = held_of(unit, optimizer, place.own);
    return place.stage == stage && held.begin <= at && at < held.begin + held.count;
  };
  const auto found = std::ranges::find_if(mesh, holds);
  SHARDWISE_CHECK(found != mesh.end(), fmt::format("element {} is nobody's", at));
  const ShardRange held = held_of(unit, optimizer, found->own);
  return {static_cast<int>(found - mesh.begin()), held.begin + held.count - at};
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

void save_weights(const RankState& state, const Arena& arena, Device& device, const Plan& plan,
                  ControlGroup& everyone, const SaveRules& rules) {
  const std::unique_ptr<DeviceStream> stream = device.stream(StreamPriority::normal);
  const ModelUnits units = model_units(lowering_context(plan, Granularity::layer, false));
  const std::vector<MeshPlace> mesh = mesh_of(plan.layout);
  const Placement optimizer = state.placement().optimizer;
  std::optional<SafetensorsSetWriter> writer;
  if (everyone.rank() == 0) {
    std::vector<TensorSpec> tensors;
    for (const ModelUnits::Place& place : units.tensors) {
      const UnitTensor& tensor = units.tensor(place);
      tensors.push_back({tensor.name, rules.type, tensor.shape});
    }
    writer.emplace(rules.folder, std::move(tensors), rules.most_bytes,
                   StoredMetadata{{"format", "pt"}});
  }
  std::vector<float> staged;
  for (const ModelUnits::Place& place : units.tensors) {
    const UnitTensor& tensor = units.tensor(place);
    const StateUnit& unit = units.unit(place);
    const std::int64_t end = tensor.begin + tensor.filled;
    for (std::int64_t at = tensor.begin; at < end;) {
      const auto [owner, has] = holder_of(mesh, place.stage, unit, optimizer, at);
      const auto count = static_cast<std::size_t>(std::min({has, end - at, kPiece}));
      staged.resize(count);
      const std::span<float> piece(staged);
      if (owner == everyone.rank()) {
        const RankState::View view = state.view(arena, 0, place.tensor.unit);
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
  config.write(config_json(plan.model, rules.type));
  config.finish();
}

}  // namespace shardwise::exec
