#include "planner/score/rows/row_recompute.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "planner/cost/layer/recompute_modules.h"

namespace shardwise {
namespace {

/// torchtitan's selective checkpointing by operator: every second matrix product of a block is
/// kept, in the order q, k, v, o, gate, up, down; attention is kept; all else is run again.
/// Source: pytorch/torchtitan@004b3148:torchtitan/parallelisms/parallelize_llama.py, _save_list and
/// _custom_policy.
const std::vector<std::string>& torchtitan_operations() {
  static const std::vector<std::string> kOperations = {
      "attention_norm",   "self_attn.k_proj",   "self_attn.rope",
      "self_attn.o_proj", "attention_residual", "mlp_norm",
      "mlp.up_proj",      "mlp.activation",     "mlp_residual"};
  return kOperations;
}

/// Megatron-Core's --recompute-modules and the operations they run again.
struct Module {
  std::string_view word;  // of the measurement
  std::vector<std::string> operations;
};
const std::array<Module, 6>& megatron_modules() {
  static const std::array<Module, 6> kModules = {{
      {"core_attn", {"self_attn.core"}},
      {"layernorm", named_operations("layernorm")},
      {"rmsnorm", named_operations("layernorm")},
      {"mla", named_operations("mla_up_proj")},
      {"moe_act", named_operations("moe_act")},
      {"shared_experts", named_operations("shared_experts")},
  }};
  return kModules;
}

/// "every 2nd layer" -> 2; 0 when no interval is named.
int interval_in(std::string_view wording) {
  constexpr std::string_view kEvery = "every ";
  const std::size_t at = wording.find(kEvery);
  int interval = 0;
  if (at != std::string_view::npos) {
    std::from_chars(wording.data() + at + kEvery.size(), wording.data() + wording.size(), interval);
  }
  return interval > 0 ? interval : 0;
}

std::optional<RowRecompute> selective(const Row& row, const RowEngine& engine, Notes& notes) {
  const std::string_view wording = row.recompute;
  RowRecompute result;
  if (const int interval = interval_in(wording); interval > 0) {
    result.kind = Recompute::full;
    result.interval = interval;
    return result;
  }
  if (says(wording, "fractional")) {
    notes.refuse("share of recomputed layers not stated");
    return std::nullopt;
  }
  for (const Module& module : megatron_modules()) {
    if (says(wording, module.word)) {
      result.operations.insert(result.operations.end(), module.operations.begin(),
                               module.operations.end());
    }
  }
  if (!result.operations.empty()) return result;
  if (engine.torchtitan || says_any(wording, "op-sac", "per-op")) {
    result.operations = torchtitan_operations();
    return result;
  }
  result.kind = Recompute::selective;
  return result;
}

}  // namespace

std::optional<RowRecompute> recompute_of(const Row& row, const RowEngine& engine, Notes& notes) {
  const std::string_view wording = row.recompute;
  RowRecompute result;
  if (wording.empty() || says(wording, "not stated")) {
    result.stated = false;
    return result;
  }
  if (says(wording, "selective")) return selective(row, engine, notes);
  if (wording.starts_with("full") || wording.starts_with("on")) {
    result.kind = Recompute::full;
    return result;
  }
  if (wording.starts_with("none") || wording.starts_with("mostly none")) return result;
  notes.refuse(fmt::format("recompute \"{}\"", wording));
  return std::nullopt;
}

}  // namespace shardwise
