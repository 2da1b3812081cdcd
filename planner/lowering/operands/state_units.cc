#include "planner/lowering/operands/state_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/cost/layer/key_heads.h"
#include "planner/cost/layer/registered_tensors.h"
#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/lowering/data_parallel/buckets.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

std::string with_index(std::string name, const char* what, std::int64_t number) {
  const std::size_t at = name.find(what);
  if (at != std::string::npos) name.replace(at, std::string(what).size(), std::to_string(number));
  return name;
}

/// By layer of the model: its number among the blocks, as checkpoints count.
std::vector<std::int64_t> block_numbers(const ModelSpec& model) {
  std::vector<std::int64_t> numbers;
  std::int64_t next = 0;
  for (const int kind : model.layers) {
    const LayerRole role = model.kinds[static_cast<std::size_t>(kind)].role;
    const bool outside = role == LayerRole::embedding || role == LayerRole::head;
    numbers.push_back(outside ? 0 : next++);
  }
  return numbers;
}

/// In a parameter's place: the copy that a head's stage has of the token table, the first parameter
/// of the first layer.
constexpr std::int32_t kTableCopy = -1;

class Collector {
 public:
  explicit Collector(const LoweringContext& context)
      : context_(context), numbers_(block_numbers(context.plan->model)) {
    made_.places.resize(context.plan->model.layers.size());
  }

  const LayerSpec& kind(std::int32_t layer) const {
    const ModelSpec& model = context_.plan->model;
    return model.kinds[static_cast<std::size_t>(model.layers[static_cast<std::size_t>(layer)])];
  }
  const std::vector<ParameterSpec>& parameters(std::int32_t layer) const {
    return kind(layer).parameters;
  }

  const ParameterSpec& spec_of(std::int32_t layer, std::int32_t parameter) const {
    if (parameter == kTableCopy) return parameters(0).front();
    return parameters(layer)[static_cast<std::size_t>(parameter)];
  }

  std::int64_t elements(std::int32_t layer, std::int32_t parameter) const {
    const ParameterSpec& spec = spec_of(layer, parameter);
    const std::int64_t copies =
        parameter == kTableCopy
            ? 1
            : parameter_copies(kind(layer), parameter, context_.engine(), context_.layout());
    return local_tensor(spec, context_.engine(), context_.layout(), copies).elements();
  }

  /// \param start  the tensor begins at a multiple of so many elements
  void add(StateUnit& unit, std::int32_t layer, std::int32_t parameter, std::int64_t start) {
    const ParameterSpec& spec = spec_of(layer, parameter);
    const auto l = static_cast<std::size_t>(parameter == kTableCopy ? 0 : layer);
    UnitTensor tensor;
    tensor.layer = layer;
    tensor.copy = parameter == kTableCopy;
    tensor.parameter = tensor.copy ? 0 : parameter;
    tensor.name = with_index(spec.name, "{layer}", numbers_[l]);
    tensor.shape = spec.shape;
    tensor.cut = tensor_cut(kind(static_cast<std::int32_t>(l)), tensor.parameter, context_.engine(),
                            context_.layout());
    tensor.elements = elements(layer, parameter);
    tensor.filled = spec.elements();
    tensor.begin = round_up(unit.elements, start);
    unit.elements = tensor.begin + tensor.elements;
    std::vector<TensorPlace>& places = made_.places[l];
    places.resize(parameters(static_cast<std::int32_t>(l)).size());
    places[static_cast<std::size_t>(tensor.parameter)] = {made_.units.size(), unit.tensors.size()};
    unit.tensors.push_back(std::move(tensor));
  }

  void close(StateUnit unit) { made_.units.push_back(std::move(unit)); }
  StateUnits take() { return std::move(made_); }

 private:
  const LoweringContext& context_;
  std::vector<std::int64_t> numbers_;
  StateUnits made_;
};

/// What of a layer one rank updates where both axes share the optimizer's state.
std::int64_t outer_shard(const LoweringContext& context, std::int32_t layer) {
  const ModelSpec& model = context.plan->model;
  StageLayers alone;
  alone.runs.push_back({model.layers[static_cast<std::size_t>(layer)], 1, 0});
  const StageParts parts = stage_parts(model, context.memories, alone);
  return placed_elements(parts, context.engine(), context.layout(), Placement::shard_both,
                         context.memory_rules.shard_multiple)
      .elements();
}

/// Whether units end where the last rank's piece does: where collectives take equal pieces only, as
/// on GPUs, and under engines that have the padding of what is whole.
bool equal_pieces(const LoweringContext& context) {
  const EngineProfile& engine = context.engine();
  if (context.placement.optimizer == Placement::replicate) return false;
  return context.plan->cluster.gpu.vendor != "cpu" || pads_whole_units(engine, context.layout()) ||
         pads_whole_buckets(engine, context.layout());
}

/// Ends the unit where the last rank's piece does: what ranks keep and move is whole pieces.
void pad(StateUnit& unit, const LoweringContext& context) {
  if (unit.outer_shard > 0) {
    unit.shard = std::max(unit.shard, unit.outer_shard * context.layout().dp_replicate);
  }
  unit.elements = std::max(unit.elements, unit.shard * context.shards.dense);
}

/// A tensor of the stage, in the order in which backward completes them.
struct Turn {
  std::int32_t layer = 0;
  std::int32_t parameter = 0;  // or kTableCopy
  bool joins = false;          // the one before it, as rows of one of the engine's tensors
};

}  // namespace

StateUnits state_units(const LoweringContext& context, std::int32_t stage) {
  std::vector<StageLayer> slots;  // in the order of the buckets: by chunk, the last layer first
  for (const ModelChunk& chunk : context.stage_chunks[static_cast<std::size_t>(stage)]) {
    slots.insert(slots.end(), chunk.layers.rbegin(), chunk.layers.rend());
  }
  Collector collector(context);
  std::array<std::vector<Turn>, 2> turns;  // of units, and of what is outside in root_buckets()
  const bool fills = fills_root_buckets(context.engine(), context.layout());
  for (const StageLayer& slot : slots) {
    const std::int32_t number = slot.layer;
    const LayerSpec& layer = context.plan->model.kinds[static_cast<std::size_t>(slot.kind)];
    const std::vector<RegisteredTensor> tensors =
        registered_tensors(layer, context.plan->job, context.engine());
    std::vector<Turn>& own = turns[fills && is_outside(layer.role) ? 1 : 0];
    if (slot.copies_table) own.push_back({number, kTableCopy, false});
    for (std::size_t t = tensors.size(); t-- > 0;) {
      for (std::size_t p = tensors[t].size(); p-- > 0;) {
        own.push_back({number, tensors[t][p], p + 1 < tensors[t].size()});
      }
    }
  }
  const std::int64_t start = bucket_rules(context.engine(), context.layout(), true).start;
  std::array<std::vector<Turn>::iterator, 2> at = {turns[0].begin(), turns[1].begin()};
  for (const Bucket& bucket : buckets_of(context, stage)) {
    StateUnit unit;
    std::int64_t elements = 0;
    auto& next = at[bucket.root ? 1 : 0];
    auto end = next;
    for (; end != turns[bucket.root ? 1 : 0].end() && elements < bucket.elements; ++end) {
      elements += collector.elements(end->layer, end->parameter);
    }
    SHARDWISE_CHECK(elements == bucket.elements,
                    fmt::format("{} of {}", elements, bucket.elements));
    const auto copies =
        std::count_if(next, end, [](const Turn& turn) { return turn.parameter == kTableCopy; });
    const bool whole_layer = bucket.first == bucket.last &&
                             std::ssize(collector.parameters(next->layer)) + copies == end - next;
    unit.shard = ceil_div(bucket.padded, context.shards.dense);
    if (whole_layer) unit.layer = next->layer;
    if (context.placement.optimizer == Placement::shard_both) {
      // A layer alone is without the copy of another stage's table.
      const bool all = bucket.root || copies > 0;
      unit.outer_shard = all ? ceil_div(unit.shard, context.layout().dp_replicate)
                             : outer_shard(context, next->layer);
    }
    // A layer's own unit has its tensors in the order of the model, where nothing aligns them, and
    // so has a bucket outside the units.
    if ((whole_layer && start == 1) || bucket.root) std::reverse(next, end);
    for (; next != end; ++next) {
      collector.add(unit, next->layer, next->parameter, next->joins ? 1 : start);
    }
    if (equal_pieces(context)) pad(unit, context);
    collector.close(std::move(unit));
  }
  SHARDWISE_CHECK(at[0] == turns[0].end() && at[1] == turns[1].end(),
                  "every tensor is in a bucket");
  return collector.take();
}

std::size_t StateUnits::of_layer(std::int32_t layer) const {
  const auto found = std::ranges::find(units, layer, &StateUnit::layer);
  SHARDWISE_CHECK(found != units.end(), fmt::format("layer {} has no unit of its own", layer));
  return static_cast<std::size_t>(found - units.begin());
}

TensorPlace StateUnits::table() const { return places.front().front(); }

std::int64_t StateUnits::elements() const {
  std::int64_t sum = 0;
  for (const StateUnit& unit : units) sum += unit.elements;
  return sum;
}

}  // namespace shardwise
