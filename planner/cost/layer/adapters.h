#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

// Adapters of a frozen model, and the scales of narrow matrices that they may be beside, are
// parameters of its layers under the names that PEFT and bitsandbytes have in checkpoints. So a
// plan keeps them with its model, and each cost follows from what is there.

/// Format that the frozen matrices of a model's linear layers are kept in.
enum class BaseFormat : std::uint8_t {
  as_computed,
  nf4,         // bitsandbytes: half a byte an element and an fp32 scale for 64
  nf4_double,  // its scales are 8 bits, with an fp32 scale for 256 of them
  int8,        // bitsandbytes' LLM.int8(): a byte an element and an fp32 scale for a row
};

/// peft@v0.21.2:src/peft/tuners/lora/config.py, LoraConfig.r
inline constexpr std::int64_t kUsualAdapterRank = 8;

struct AdapterChoice {
  std::vector<std::string> targets;  // PEFT's target_modules: names of modules, or all-linear
  std::int64_t rank = kUsualAdapterRank;
  BaseFormat base = BaseFormat::as_computed;
  friend bool operator==(const AdapterChoice&, const AdapterChoice&) = default;
};

/// Names that `targets` may have: the last words of the model's linear layers, sorted.
std::vector<std::string> adapter_targets(const ModelSpec& model);

/// Adds to each linear layer that a target names lora_A [rank, in] and lora_B [out, rank]; all
/// parameters else are frozen. "all-linear" is every one but the head. In a narrow format those of
/// the blocks have the scales of their blocks or rows besides.
/// \returns the targets that name no linear layer
/// Source: Hu et al., arXiv:2106.09685, section 4.1; peft@v0.21.2:src/peft/tuners/lora/layer.py,
/// tuners_utils.py (_maybe_include_all_linear_layers).
std::vector<std::string> add_adapters(ModelSpec& model, const AdapterChoice& choice);

/// Adapters that add_adapters() was given, if called; all-linear where that is what it comes to.
std::optional<AdapterChoice> adapters_of(const ModelSpec& model);

/// Whether it was.
bool has_adapters(const ModelSpec& model);

/// lora_A or lora_B: trained though the model is frozen.
bool is_adapter(const ParameterSpec& parameter);

/// The model without what add_adapters() added.
ModelSpec without_adapters(const ModelSpec& model);

/// Adapter beside the matrix of one GEMM.
struct AdaptedLinear {
  std::int64_t rank = 0;  // 0 for no adapter
  BaseFormat base = BaseFormat::as_computed;
  bool packed() const { return base == BaseFormat::nf4 || base == BaseFormat::nf4_double; }
};
/// Adapters by operation of the layer; empty where it has neither.
std::vector<AdaptedLinear> adapted_linears(const LayerSpec& layer);

/// Bytes of a frozen parameter on a rank that holds `elements` of it.
struct FrozenBytes {
  std::int64_t placed = 0;  // shared by the ranks that share parameters
  std::int64_t whole = 0;   // on each of them: scales, which are beside the parameters, not among
                            // them
};
/// \param each  bytes of an element that is in no narrow format
/// Source: bitsandbytes@0.50.2:bitsandbytes/functional.py, quantize_4bit and int8_vectorwise_quant;
/// nn/modules.py, Params4bit, QuantState and Int8Params; tests/golden/adapters.py has what its own
/// code makes.
FrozenBytes frozen_bytes(const LayerSpec& layer, const ParameterSpec& parameter,
                         std::int64_t elements, std::int64_t each);

/// Scales of a matrix in a narrow format.
bool is_scale(const ParameterSpec& parameter);

/// The other half of what was cast to fp32: prepare_model_for_kbit_training does so with all
/// that is in 16 bits. Sharded units have one dtype, so nothing is cast under ZeRO-3; nor is it
/// where adapters are in 16 bits, as the scripts that cast those cast embedding and head back.
/// Source: peft@v0.21.2:src/peft/utils/other.py; artidoro/qlora:qlora.py, get_accelerate_model.
bool is_remainder(const ParameterSpec& parameter);

}  // namespace shardwise
