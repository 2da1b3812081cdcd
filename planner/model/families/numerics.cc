#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "planner/model/families/families.h"

namespace shardwise {
namespace {

// transformers 4.57.6, activations.py, ACT2CLS.
constexpr std::array<std::pair<std::string_view, ActivationFunction>, 9> kFunctions = {{
    {"gelu", ActivationFunction::gelu_erf},
    {"gelu_python", ActivationFunction::gelu_erf},
    {"gelu_accurate", ActivationFunction::gelu_new},
    {"gelu_fast", ActivationFunction::gelu_tanh},
    {"gelu_new", ActivationFunction::gelu_new},
    {"gelu_pytorch_tanh", ActivationFunction::gelu_tanh},
    {"relu", ActivationFunction::relu},
    {"silu", ActivationFunction::silu},
    {"swish", ActivationFunction::silu},
}};

/// Scaling as transformers 4.57.6 names it, modeling_rope_utils.py, ROPE_INIT_FUNCTIONS; "type" is
/// the older key.
void read_scaling(ObjectReader& reader, ModelNumerics& n) {
  const std::string type =
      reader.string_or("rope_type", reader.string_or("type", std::string("default")));
  if (type == "default") return;
  n.rope_scaling = type == "linear"   ? RopeScaling::linear
                   : type == "llama3" ? RopeScaling::llama3
                                      : RopeScaling::other;
  if (n.rope_scaling == RopeScaling::other) return;
  n.rope_factor = reader.number_or("factor", n.rope_factor, 1, 1e6);
  n.rope_low_freq_factor = reader.number_or("low_freq_factor", n.rope_low_freq_factor, 1e-6, 1e6);
  n.rope_high_freq_factor =
      reader.number_or("high_freq_factor", n.rope_high_freq_factor, 1e-6, 1e6);
  n.rope_original_max_position_embeddings = reader.integer_or(
      "original_max_position_embeddings", n.rope_original_max_position_embeddings, 1, kMaxSize);
}

}  // namespace

ActivationFunction activation_function(std::string_view name) {
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return function;
  }
  return ActivationFunction::other;
}

ModelNumerics llama_numerics(ConfigFile& file) {
  ModelNumerics n;
  n.norm_epsilon = file.number("rms_norm_eps", 1e-6, 0, 1);
  n.activation = activation_function(file.reader().string_or("hidden_act", "silu"));
  bool theta = file.has("rope_theta");
  n.rope_theta = file.reader().number_or("rope_theta", n.rope_theta, 1, 1e12);
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!file.has(key)) continue;
    const JsonValue* scaling = file.reader().object(key, false);
    if (scaling == nullptr) continue;
    ObjectReader nested = file.reader().nested(key, *scaling);
    theta = theta || nested.has("rope_theta");
    n.rope_theta = nested.number_or("rope_theta", n.rope_theta, 1, 1e12);
    read_scaling(nested, n);
  }
  if (!theta) file.assume("rope_theta", fmt::format("{:g}", n.rope_theta));
  return n;
}

RouterNumerics router_numerics(ConfigFile& file, RouterNumerics usual) {
  RouterNumerics router = usual;
  router.norm_topk_prob = file.flag("norm_topk_prob", usual.norm_topk_prob);
  return router;
}

RouterNumerics grouped_router_numerics(ConfigFile& file, RouterNumerics usual) {
  RouterNumerics router = router_numerics(file, usual);
  const auto groups = [&](std::string_view key, std::int64_t fallback) {
    if (!file.has(key)) file.assume(key, std::to_string(fallback));
    return file.reader().integer_or(key, fallback, 1, kMaxExperts);
  };
  router.n_group = groups("n_group", usual.n_group);
  router.topk_group = groups("topk_group", usual.topk_group);
  router.routed_scaling_factor =
      file.number("routed_scaling_factor", usual.routed_scaling_factor, 0, 1e6);
  return router;
}

double rotated_share(ConfigFile& file, std::string_view key, double fallback) {
  constexpr std::string_view kNested = "rope_parameters";
  constexpr std::string_view kNestedKey = "partial_rotary_factor";
  const JsonValue* parameters = file.has(kNested) ? file.reader().object(kNested, false) : nullptr;
  if (parameters != nullptr && !file.has(key)) {
    ObjectReader nested = file.reader().nested(kNested, *parameters);
    if (nested.has(kNestedKey)) return nested.number_or(kNestedKey, fallback, 0, 1);
  }
  return file.number(key, fallback, 0, 1);
}

}  // namespace shardwise
