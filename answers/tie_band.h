#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardwise::sim {

/// How much longer a predicted step must be before it is likely to be longer when measured.
///
/// The median error between two predictions for one model on the same GPUs: of two layouts whose
/// predictions differ by less, about half could rank the other way. Errors that both layouts share
/// cancel, so the band is narrower than the error of one prediction.
struct TieBand {
  double share = 0;          // of the shorter step
  std::string engine;        // whose runs it was fitted on; empty: those of all engines
  std::int64_t pairs = 0;    // of measured runs
  std::int64_t sources = 0;  // of these
  std::string method;
  std::string source;
};

/// The band of an engine; of all engines together for one whose runs nobody published in pairs.
/// Source: configs/ranking.json, fitted by tests/bench/tie_band.py.
TieBand tie_band(std::string_view engine);

}  // namespace shardwise::sim
