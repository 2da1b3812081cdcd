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

/// The lowest rank of a stage that updates element `at` of a unit in the parts of tensors that
/// belong to a rank of tensor parallelism, and how many from there on.
std::pair<int, std::int64_t> holder_of(const std::vector<MeshPlace>& mesh, std::size_t stage,
                                       std::int64_t tp_rank, const StateUnit& unit,
                                       Placement optimizer, std::int64_t at) {
  const auto holds = [&](const MeshPlace& place) {
    const ShardRange held = held_of(unit, optimizer, place.own);
    const bool part = place.stage == stage && place.own.tp_rank == tp_rank;
    return part && held.begin <= at && at < held.begin + held.count;
  };
  const auto found = std::ranges::find_if(mesh, holds);
  SHARDWISE_CHECK(found != mesh.end(), fmt::format("element {} is nobody's", at));
  const ShardRange held = held_of(unit, optimizer, found->own);
  return {static_cast<int>(found - mesh.begin()), held.begin + held.count - at};
}

/// Sends rank 0 the weights that it lacks.
class Collector {
 public:
  Collector(const RankState& state, const Arena& arena, Device& device, const Layout& layout,
            ControlGroup& everyone)
      : state_(state),
        arena_(arena),
        device_(device),
        stream_(device.stream(StreamPriority::normal)),
        mesh_(mesh_of(layout)),
        everyone_(everyone) {}

  /// Elements of a whole tensor from number `first` on, on rank 0. All ranks call together.
  void collect(const ModelUnits& units, const ModelUnits::Place& place, std::int64_t first,
               std::span<float> values) {
    const UnitTensor& tensor = units.tensor(place);
    const StateUnit& unit = units.unit(place);
    if (!tensor.cut.cut()) return collect_part(place, unit, 0, tensor.begin + first, values);
    // What a rank has of them is one range of its part.
    const auto ways = static_cast<std::size_t>(tensor.cut.ways);
    std::vector<ShardRange> ranges(ways);
    for_part_runs(tensor.cut, first, std::ssize(values), [&](const PartRun& run) {
      ShardRange& range = ranges[static_cast<std::size_t>(run.rank)];
      if (range.count == 0) range.begin = run.part;
      range.count += run.count;
    });
    std::vector<std::vector<float>> parts(ways);
    for (std::size_t r = 0; r < ways; ++r) {
      parts[r].resize(static_cast<std::size_t>(ranges[r].count));
      const auto leader = static_cast<std::int64_t>(r) * tensor.cut.copies;
      collect_part(place, unit, leader, tensor.begin + ranges[r].begin, parts[r]);
    }
    for_part_runs(tensor.cut, first, std::ssize(values), [&](const PartRun& run) {
      const auto r = static_cast<std::size_t>(run.rank);
      std::copy_n(parts[r].begin() + (run.part - ranges[r].begin), run.count,
                  values.begin() + (run.whole - first));
    });
  }

 private:
  /// Elements of a unit from number `at` on, of a rank of tensor parallelism.
  void collect_part(const ModelUnits::Place& place, const StateUnit& unit, std::int64_t tp_rank,
                    std::int64_t at, std::span<float> values) {
    while (!values.empty()) {
      const auto [owner, has] =
          holder_of(mesh_, place.stage, tp_rank, unit, state_.placement().optimizer, at);
      const std::int64_t count = std::min(has, std::ssize(values));
      const std::span<float> piece = values.first(static_cast<std::size_t>(count));
      if (owner == everyone_.rank()) {
        const RankState::View view = state_.view(arena_, 0, place.tensor.unit);
        const auto first = static_cast<std::size_t>(at - view.held.begin);
        RankState::download_main(view, first, piece, device_, *stream_);
      }
      if (owner != 0) everyone_.broadcast(std::as_writable_bytes(piece), owner);
      values = values.subspan(piece.size());
      at += count;
    }
  }

  const RankState& state_;
  const Arena& arena_;
  Device& device_;
  std::unique_ptr<DeviceStream> stream_;
  std::vector<MeshPlace> mesh_;
  ControlGroup& everyone_;
};

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
  const ModelUnits units = model_units(lowering_context(plan, Granularity::layer, false));
  Collector collector(state, arena, device, plan.layout, everyone);
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
    const std::int64_t all = units.tensor(place).filled;
    for (std::int64_t at = 0; at < all; at += kPiece) {
      staged.resize(static_cast<std::size_t>(std::min(kPiece, all - at)));
      collector.collect(units, place, at, staged);
      if (writer) write_numbers(*writer, rules.type, staged);
    }
  }
  if (!writer) return;
  writer->finish();
  DurableFile config(rules.folder / "config.json");
  config.write(config_json(plan.model, rules.type));
  config.finish();
}

}  // namespace shardwise::exec
