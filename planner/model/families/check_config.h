#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "planner/model/families/transformer_config.h"

namespace shardwise {

/// Largest sizes accepted: far beyond any transformer, small enough that no product overflows.
inline constexpr std::int64_t kMaxSize = 100'000'000;  // widths and vocabulary
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxHeads = 65'536;
inline constexpr std::int64_t kMaxExperts = 65'536;
inline constexpr double kMaxParameters = 1e15;

/// Words of the checks for the author of the model.
struct ConfigVoice {
  /// Name in the user's file of a TransformerConfig field ("hidden_size" is "n_embd" in GPT-2).
  std::function<std::string(std::string_view field)> key_of;
  /// False when the field was already found wrong, so that what follows from it is not said too.
  std::function<bool(std::string_view field)> usable;
  /// Reports one problem at `field`.
  std::function<void(std::string_view field, std::string message, std::string hint)> fail;
};

/// Resolves the derived sizes of `config` (zeros, see transformer_config.h) and reports everything
/// that does not fit together.
void resolve_and_check(TransformerConfig& config, const ConfigVoice& voice);

}  // namespace shardwise
