#include "planner/spec/plan/model_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMostMatrixElements = std::int64_t{1} << 62;

Diagnostic model_problem(const std::string& path, std::string message) {
  return {
      "", 0, 0, "/model/" + path, std::move(message), "write the plan anew with shardwise plan"};
}

/// One number of an operation that a size of the model decides.
struct Decided {
  const char* key;
  std::int64_t is;
  const char* size;
  std::int64_t has_to_be;
};

std::vector<Decided> decided(const OperationSpec& op, const ModelSpec& model) {
  if (op.tp == TpSplit::vocab) {
    const bool table = op.kind == OpKind::embedding;
    return {{table ? "k" : "width", table ? op.k : op.width, "vocab_size", model.vocab_size}};
  }
  if (op.kind == OpKind::residual) {
    return {{"width", op.width, "hidden_size", model.hidden_size}};
  }
  if (op.kind != OpKind::attention) return {};
  return {{"heads", op.heads, "num_attention_heads", model.num_attention_heads},
          {"kv_heads", op.kv_heads, "num_key_value_heads", model.num_key_value_heads}};
}

std::optional<Diagnostic> contradiction(const LayerSpec& kind, const ModelSpec& model,
                                        const std::string& path) {
  const auto differs = [](const std::string& at, const Decided& each) {
    return model_problem(
        at, fmt::format("{} contradicts {}, which is {}", each.is, each.size, each.has_to_be));
  };
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    const ParameterSpec& p = kind.parameters[i];
    if (p.tp != TpSplit::vocab || p.tp_dim < 0) continue;
    const std::int64_t rows = p.shape[static_cast<std::size_t>(p.tp_dim)];
    if (rows == model.vocab_size) continue;
    return differs(fmt::format("{}/parameters/{}/shape/{}", path, i, p.tp_dim),
                   {"", rows, "vocab_size", model.vocab_size});
  }
  for (std::size_t i = 0; i < kind.operations.size(); ++i) {
    for (const Decided& each : decided(kind.operations[i], model)) {
      if (each.is == each.has_to_be) continue;
      return differs(fmt::format("{}/operations/{}/{}", path, i, each.key), each);
    }
  }
  return std::nullopt;
}

/// A matrix product without a matrix of as many elements. The vocabulary's may be another layer's.
std::optional<Diagnostic> product_without_matrix(const LayerSpec& kind, const std::string& path) {
  std::map<std::int64_t, std::int64_t> matrices;  // elements, how many
  for (const ParameterSpec& p : kind.parameters) {
    if (!p.routed_expert) ++matrices[p.elements()];
  }
  for (const OperationSpec& op : kind.operations) {
    if (op.kind != OpKind::gemm || op.routed_expert || op.tp == TpSplit::vocab) continue;
    const bool possible = op.k == 0 || op.width <= kMostMatrixElements / op.k;
    if (possible && matrices[op.k * op.width]-- > 0) continue;
    return model_problem(path + "/parameters",
                         fmt::format("has no matrix of {} x {} for the operation {}", op.width,
                                     op.k, shown(op.name)));
  }
  return std::nullopt;
}

}  // namespace

Diagnostics check_model_lists(const ModelSpec& model) {
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const std::string path = fmt::format("kinds/{}", k);
    auto found = contradiction(model.kinds[k], model, path);
    if (!found) found = product_without_matrix(model.kinds[k], path);
    if (found) return {*std::move(found)};
  }
  const auto blocks = std::ranges::count_if(model.layers, [&](int kind) {
    return model.kinds[static_cast<std::size_t>(kind)].role == LayerRole::block;
  });
  if (blocks == model.num_hidden_layers) return {};
  return {model_problem("layers", fmt::format("has {} blocks, and num_hidden_layers is {}", blocks,
                                              model.num_hidden_layers))};
}

}  // namespace shardwise
