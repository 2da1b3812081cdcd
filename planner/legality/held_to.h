#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/plan/engine_profile.h"

namespace shardwise {

/// The version of an engine whose own classes the ledger is compared with, job by job. The bytes
/// that they gave are in tests/golden/engines; docs/engines.md has the differences.
struct HeldTo {
  std::string engine;
  std::string version;     // "Megatron-LM d98e8a64 (core 0.20.0), PyTorch 2.15.0"
  std::string held;        // which figures: "states and lists of buckets, no activations"
  std::int64_t cases = 0;  // jobs that were compared
};

/// That of configs/engines/held_to.json, or nullptr where nothing of the engine was run. An engine
/// that varies another one has none of its own.
const HeldTo* held_to(const EngineProfile& engine);

}  // namespace shardwise
