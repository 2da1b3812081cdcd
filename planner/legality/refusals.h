#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// Where the own code of engines refuses what a layout rule refuses.
struct EngineRefusal {
  std::string rule;                  // LayoutRule::id
  std::vector<std::string> engines;  // whose code does
  std::string code;                  // "NVIDIA/Megatron-LM@d98e8a64"
  std::string at;                    // the assertion: "megatron/training/arguments.py:1025"
};

/// Those of configs/engines/refusals.json.
std::span<const EngineRefusal> engine_refusals();

/// That of one engine, or nullptr where its code does not refuse it: there is no such part in it,
/// or the job would run and be wrong.
const EngineRefusal* engine_refusal(std::string_view engine, std::string_view rule);

/// Where the code of the first of `engines` that refuses it does; empty where none does.
std::string refused_at(std::span<const std::string> engines, std::string_view rule);

/// That of one engine as a clause behind a message: " (NVIDIA/Megatron-LM@d98e8a64:megatron/…)";
/// empty where there is none.
std::string refusal_clause(std::string_view engine, std::string_view rule);

}  // namespace shardwise
