#include "planner/cost/layer/adapters.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "planner/cost/layer/linear_parameters.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kLoraA = ".lora_A.weight";
constexpr std::string_view kLoraB = ".lora_B.weight";
constexpr std::string_view kScales = ".absmax";
constexpr std::string_view kScalesOfScales = ".nested_absmax";
// Tables of the 16 values of NF4 and of the 256 of a scale in 8 bits, and the mean that is taken
// off scales: of each matrix its own.
constexpr std::string_view kTable = ".quant_map";
constexpr std::string_view kTableOfScales = ".nested_quant_map";
constexpr std::string_view kOffset = ".nested_offset";
constexpr std::string_view kRowScales = ".SCB";  // of a module, as bitsandbytes names them
constexpr std::string_view kRemainder = ".fp32_remainder";
constexpr const char* kAllLinear = "all-linear";
constexpr std::int64_t kBlock = 64;  // elements of a matrix that share a scale
constexpr std::int64_t kBlockOfScales = 256;
constexpr std::int64_t kTableValues = 16;
constexpr std::int64_t kFp32 = 4;

/// "model.layers.{layer}.self_attn.q_proj" of its weight.
std::string_view module_of(const ParameterSpec& weight) {
  std::string_view name = weight.name;
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return name;
}

std::string_view last_word(std::string_view module) {
  return module.substr(module.rfind('.') + 1);  // all of it where there is no dot
}

/// PEFT takes a target as the whole name of a module or as its last words.
bool names(const std::string& target, std::string_view module) {
  return module == target || module.ends_with("." + target);
}

bool has(const LayerSpec& layer, std::string_view module, std::string_view suffix) {
  return std::ranges::any_of(layer.parameters, [&](const ParameterSpec& p) {
    return p.name.size() == module.size() + suffix.size() && p.name.starts_with(module) &&
           p.name.ends_with(suffix);
  });
}

/// A matrix that a linear layer has by itself: experts in one tensor are no module of PEFT's, and a
/// router is one of transformers' own classes.
bool is_module(const LinearParameters& linear, const ParameterSpec& weight) {
  return weight.shape.size() == 2 && weight.name.ends_with(kWeight) &&
         !linear.operation->name.ends_with("router_proj");
}

template <class Layer, class Visit>
void for_modules(Layer& layer, const Visit& visit) {
  for (const LinearParameters& linear : linear_parameters(layer)) {
    const auto at = static_cast<std::size_t>(linear.weight);
    if (is_module(linear, layer.parameters[at])) visit(*linear.operation, layer.parameters[at]);
  }
}

bool is_head(const OperationSpec& op) { return op.tp == TpSplit::vocab; }

/// lora_A and lora_B beside a matrix, cut where it is cut.
void add_adapter(std::vector<ParameterSpec>& to, const OperationSpec& op,
                 const ParameterSpec& weight, std::int64_t rank) {
  ParameterSpec a;
  a.name = std::string(module_of(weight)).append(kLoraA);
  a.shape = {rank, op.k};
  a.count = weight.count;
  a.routed_expert = weight.routed_expert;
  ParameterSpec b = a;
  b.name = std::string(module_of(weight)).append(kLoraB);
  b.shape = {op.width, rank};
  if (op.tp == TpSplit::row) {
    a.tp = TpSplit::row;
    a.tp_dim = 1;
  } else if (op.tp == TpSplit::column) {
    b.tp = TpSplit::column;
    b.tp_dim = 0;
  }
  to.push_back(std::move(a));
  to.push_back(std::move(b));
}

void add_scales(std::vector<ParameterSpec>& to, const OperationSpec& op,
                const ParameterSpec& weight, BaseFormat base) {
  const auto add = [&](std::string_view suffix, std::int64_t elements) {
    ParameterSpec& beside = to.emplace_back();
    const bool of_rows = suffix == kRowScales;
    beside.name = std::string(of_rows ? module_of(weight) : weight.name).append(suffix);
    beside.shape = {elements};
    beside.count = weight.count;
    beside.routed_expert = weight.routed_expert;
    beside.trainable = false;
  };
  if (base == BaseFormat::int8) {
    add(kRowScales, op.width);
    return;
  }
  const std::int64_t scales = ceil_div(weight.elements() / weight.count, kBlock);
  add(kScales, scales);
  add(kTable, kTableValues);
  if (base != BaseFormat::nf4_double) return;
  add(kScalesOfScales, ceil_div(scales, kBlockOfScales));
  add(kTableOfScales, kBlockOfScales);
  add(kOffset, 1);
}

bool is_added(const ParameterSpec& p) { return is_adapter(p) || is_remainder(p) || is_scale(p); }

bool takes(const AdapterChoice& choice, const OperationSpec& op, std::string_view module) {
  return std::ranges::any_of(choice.targets, [&](const std::string& target) {
    return target == kAllLinear ? !is_head(op) : names(target, module);
  });
}

}  // namespace

std::vector<std::string> adapter_targets(const ModelSpec& model) {
  std::set<std::string> words;
  for (const LayerSpec& layer : model.kinds) {
    for_modules(layer, [&](const OperationSpec&, const ParameterSpec& weight) {
      words.emplace(last_word(module_of(weight)));
    });
  }
  return {words.begin(), words.end()};
}

std::vector<std::string> add_adapters(ModelSpec& model, const AdapterChoice& choice) {
  std::set<std::string> unknown(choice.targets.begin(), choice.targets.end());
  unknown.erase(kAllLinear);
  for (LayerSpec& layer : model.kinds) {
    std::vector<ParameterSpec> added;
    std::set<std::string_view> packed;
    for_modules(layer, [&](const OperationSpec& op, const ParameterSpec& weight) {
      const std::string_view module = module_of(weight);
      std::erase_if(unknown, [&](const std::string& target) { return names(target, module); });
      if (choice.base != BaseFormat::as_computed && !is_head(op)) {
        add_scales(added, op, weight, choice.base);
        packed.insert(weight.name);
      }
      if (takes(choice, op, module)) add_adapter(added, op, weight, choice.rank);
    });
    if (choice.base != BaseFormat::as_computed) {
      for (const ParameterSpec& p : layer.parameters) {
        if (packed.contains(p.name) || !p.trainable) continue;
        added.push_back(p);
        added.back().name += kRemainder;
        added.back().trainable = false;
      }
    }
    layer.parameters.insert(layer.parameters.end(), added.begin(), added.end());
  }
  return {unknown.begin(), unknown.end()};
}

std::optional<AdapterChoice> adapters_of(const ModelSpec& model) {
  AdapterChoice choice;
  std::set<std::string> targets;
  bool all = true;
  for (const LayerSpec& layer : model.kinds) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.name.ends_with(kScalesOfScales)) choice.base = BaseFormat::nf4_double;
      if (p.name.ends_with(kScales) && choice.base == BaseFormat::as_computed) {
        choice.base = BaseFormat::nf4;
      }
      if (p.name.ends_with(kRowScales)) choice.base = BaseFormat::int8;
      if (p.name.ends_with(kLoraA)) choice.rank = p.shape.front();
    }
    for_modules(layer, [&](const OperationSpec& op, const ParameterSpec& weight) {
      const std::string_view module = module_of(weight);
      const bool adapted = has(layer, module, kLoraA);
      if (adapted) targets.emplace(last_word(module));
      all = all && adapted == !is_head(op);
    });
  }
  if (targets.empty()) return std::nullopt;
  choice.targets = {targets.begin(), targets.end()};
  if (all) choice.targets = {kAllLinear};
  return choice;
}

bool has_adapters(const ModelSpec& model) {
  return std::ranges::any_of(model.kinds, [](const LayerSpec& layer) {
    return std::ranges::any_of(layer.parameters, is_adapter);
  });
}

bool is_adapter(const ParameterSpec& parameter) {
  return parameter.name.ends_with(kLoraA) || parameter.name.ends_with(kLoraB);
}

bool is_remainder(const ParameterSpec& parameter) { return parameter.name.ends_with(kRemainder); }

bool is_scale(const ParameterSpec& parameter) {
  constexpr std::string_view kAll[] = {kScales,        kScalesOfScales, kTable,
                                       kTableOfScales, kOffset,         kRowScales};
  return std::ranges::any_of(
      kAll, [&](std::string_view suffix) { return parameter.name.ends_with(suffix); });
}

ModelSpec without_adapters(const ModelSpec& model) {
  ModelSpec bare = model;
  for (LayerSpec& layer : bare.kinds) std::erase_if(layer.parameters, is_added);
  return bare;
}

std::vector<AdaptedLinear> adapted_linears(const LayerSpec& layer) {
  if (std::ranges::none_of(layer.parameters, is_added)) return {};
  std::vector<AdaptedLinear> all(layer.operations.size());
  for_modules(layer, [&](const OperationSpec& op, const ParameterSpec& weight) {
    AdaptedLinear& linear = all[static_cast<std::size_t>(&op - layer.operations.data())];
    const std::string adapter = std::string(module_of(weight)).append(kLoraA);
    for (const ParameterSpec& p : layer.parameters) {
      if (p.name == adapter) linear.rank = p.shape.front();
    }
    if (has(layer, weight.name, kScales)) {
      const bool doubled = has(layer, weight.name, kScalesOfScales);
      linear.base = doubled ? BaseFormat::nf4_double : BaseFormat::nf4;
    } else if (has(layer, module_of(weight), kRowScales)) {
      linear.base = BaseFormat::int8;
    }
  });
  return all;
}

FrozenBytes frozen_bytes(const LayerSpec& layer, const ParameterSpec& parameter,
                         std::int64_t elements, std::int64_t each) {
  if (is_scale(parameter)) {
    // Scales of blocks are 8 bits where they have scales themselves.
    const bool scales = parameter.name.ends_with(kScales);
    const std::string_view weight =
        std::string_view(parameter.name).substr(0, parameter.name.size() - kScales.size());
    return {0, scales && has(layer, weight, kScalesOfScales) ? elements : elements * kFp32};
  }
  if (has(layer, parameter.name, kScales)) return {ceil_div(elements, 2), 0};
  if (has(layer, module_of(parameter), kRowScales)) return {elements, 0};
  return {elements * each, 0};
}

}  // namespace shardwise
