#include <fmt/format.h>

#include <cmath>

#include "planner/spec/json/fields.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

// The bounds of planner/model/families/check_config.h for what is read there, with room for what is
// derived.
constexpr std::int64_t kMostLayers = 20'000;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;
constexpr double kMostModelElements = 1e15;
constexpr std::size_t kMostKinds = 64;
constexpr std::size_t kMostParts = 1'000;  // parameters or operations of a kind
constexpr std::size_t kMostDimensions = 8;

template <class Io, class P>
void list_parameter(Io& io, P& p) {
  io.require({"name"});
  io.text("name", p.name);
  io.integers("shape", p.shape, 1, kMostExtent);
  io.choice("tp", p.tp);
  io.integer("tp_dim", p.tp_dim, -1, static_cast<std::int64_t>(kMostDimensions));
  io.integer("count", p.count, 1, kMostExtent);
  io.boolean("routed_expert", p.routed_expert);
  io.boolean("trainable", p.trainable);
  if constexpr (Io::kReads) {
    double elements = static_cast<double>(p.count);
    for (const std::int64_t extent : p.shape) elements *= static_cast<double>(extent);
    if (elements > kMostModelElements) io.fail("shape", fmt::format("{} elements", elements));
    const auto dimensions = static_cast<std::int64_t>(p.shape.size());
    if (p.shape.size() > kMostDimensions) {
      io.fail("shape", fmt::format("{} dimensions", dimensions),
              fmt::format("use {} at most", kMostDimensions));
    }
    if (p.tp_dim >= dimensions) {
      io.fail("tp_dim",
              fmt::format("{} is not a dimension of a shape with {}", p.tp_dim, dimensions));
      p.tp_dim = -1;
    }
  }
}
static_assert(field_count<ParameterSpec>() == 7, "list the new field above");

template <class Io, class O>
void list_operation(Io& io, O& o) {
  io.require({"name", "kind"});
  io.text("name", o.name);
  io.choice("kind", o.kind);
  io.choice("tp", o.tp);
  io.boolean("routed_expert", o.routed_expert);
  io.integer("width", o.width, 0, kMostExtent);
  io.integer("k", o.k, 0, kMostExtent);
  io.boolean("gated", o.gated);
  io.boolean("bias", o.bias);
  io.boolean("fp32", o.fp32);
  io.boolean("rms", o.rms);
  io.integer("heads", o.heads, 0, kMostExtent);
  io.integer("kv_heads", o.kv_heads, 0, kMostExtent);
  io.integer("qk_head_dim", o.qk_head_dim, 0, kMostExtent);
  io.integer("v_head_dim", o.v_head_dim, 0, kMostExtent);
  io.integer("window", o.window, 0, kMostExtent);
  io.boolean("causal", o.causal);
  io.boolean("cross", o.cross);
}
static_assert(field_count<OperationSpec>() == 17, "list the new field above");

template <class Io, class K>
void list_kind(Io& io, K& kind) {
  io.require({"name", "role"});
  io.text("name", kind.name);
  io.choice("role", kind.role);
  io.objects("parameters", kind.parameters, kMostParts,
             [](auto& nested, auto& p) { list_parameter(nested, p); });
  io.objects("operations", kind.operations, kMostParts,
             [](auto& nested, auto& o) { list_operation(nested, o); });
}
static_assert(field_count<LayerSpec>() == 4, "list the new field above");

template <class Io, class N>
void list_numerics(Io& io, N& n) {
  io.number("norm_epsilon", n.norm_epsilon, 0, 1);
  io.choice("activation", n.activation);
  io.number("rope_theta", n.rope_theta, 1, 1e12);
  io.choice("rope_scaling", n.rope_scaling);
  io.number("rope_factor", n.rope_factor, 1, 1e6);
  io.number("rope_low_freq_factor", n.rope_low_freq_factor, 1e-6, 1e6);
  io.number("rope_high_freq_factor", n.rope_high_freq_factor, 1e-6, 1e6);
  io.integer("rope_original_max_position_embeddings", n.rope_original_max_position_embeddings, 1,
             kMostExtent);
}
static_assert(field_count<ModelNumerics>() == 8, "list the new field above");

template <class Io, class R>
void list_router(Io& io, R& r) {
  io.boolean("sigmoid", r.sigmoid);
  io.boolean("norm_topk_prob", r.norm_topk_prob);
  io.integer("n_group", r.n_group, 1, kMostExtent);
  io.integer("topk_group", r.topk_group, 1, kMostExtent);
  io.number("routed_scaling_factor", r.routed_scaling_factor, 0, 1e6);
}
static_assert(field_count<RouterNumerics>() == 5, "list the new field above");

template <class Io, class M>
void list_model(Io& io, M& m) {
  io.require({"name", "kinds", "layers"});
  io.text("name", m.name);
  io.text("model_type", m.model_type);
  io.text("source", m.source);
  io.integer("hidden_size", m.hidden_size, 1, kMostExtent);
  io.integer("num_hidden_layers", m.num_hidden_layers, 1, kMostLayers);
  io.integer("num_attention_heads", m.num_attention_heads, 1, kMostExtent);
  io.integer("num_key_value_heads", m.num_key_value_heads, 1, kMostExtent);
  io.integer("head_dim", m.head_dim, 1, kMostExtent);
  io.integer("intermediate_size", m.intermediate_size, 0, kMostExtent);
  io.integer("moe_intermediate_size", m.moe_intermediate_size, 0, kMostExtent);
  io.integer("num_experts", m.num_experts, 0, kMostExtent);
  io.integer("num_experts_per_tok", m.num_experts_per_tok, 0, kMostExtent);
  io.integer("vocab_size", m.vocab_size, 1, kMostExtent);
  io.integer("max_position_embeddings", m.max_position_embeddings, 0, kMostExtent);
  io.boolean("tie_word_embeddings", m.tie_word_embeddings);
  io.object("numerics", m.numerics, [](auto& nested, auto& n) { list_numerics(nested, n); });
  if (m.num_experts > 0) {
    io.object("router", m.router, [](auto& nested, auto& r) { list_router(nested, r); });
  }
  io.objects("kinds", m.kinds, kMostKinds,
             [](auto& nested, auto& kind) { list_kind(nested, kind); });
  io.integers("layers", m.layers, 0, static_cast<std::int64_t>(kMostKinds));
}
static_assert(field_count<ModelSpec>() == 19, "list the new field above");

void check(FieldReader& io, ModelSpec& model) {
  const auto kinds = static_cast<int>(model.kinds.size());
  std::size_t blocks = 0;
  double elements = 0;
  for (int& kind : model.layers) {
    if (kind >= kinds) {
      io.fail("layers", fmt::format("{} is not an index into kinds", kind),
              kinds == 0 ? "" : fmt::format("use 0 to {}", kinds - 1));
      model.layers.clear();
      return;
    }
    const LayerSpec& spec = model.kinds[static_cast<std::size_t>(kind)];
    blocks += is_main_block(spec.role);
    elements += static_cast<double>(spec.parameter_count());
  }
  if (static_cast<std::int64_t>(model.layers.size()) > kMostLayers) {
    io.fail("layers", fmt::format("{} layers", model.layers.size()),
            fmt::format("use {} at most", kMostLayers));
  }
  if (blocks == 0) io.fail("layers", "has no transformer block");
  if (elements > kMostModelElements) io.fail("kinds", fmt::format("{} parameters", elements));
}

}  // namespace

void read_fields(ObjectReader& reader, ModelSpec& model) {
  FieldReader io(reader);
  list_model(io, model);
  if (reader.ok()) check(io, model);
  reader.reject_unknown();
}

void write_fields(JsonWriter& json, const ModelSpec& model) {
  FieldWriter io(json);
  list_model(io, model);
}

}  // namespace shardwise
