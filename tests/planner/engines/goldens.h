#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/plan/plan.h"

namespace shardwise::test {

/// Bytes that an engine's own code gave, by what they are of.
using Figures = std::vector<std::pair<std::string, std::int64_t>>;

/// A job that an engine's own classes ran, on tensors without bytes.
struct EngineCase {
  std::string name;
  Plan plan;
  std::int32_t stage = 0;
  /// "phase.category" of the ledger, equal to the byte; "phase.total" and
  /// "phase.gathered_and_staged" are peaks, which may be off by kLeastPeak to kMostPeak.
  Figures ledger;
  /// Bytes of collectives in order, equal one by one: "buckets", "expert_buckets" of gradients that
  /// lie in buckets, "first_buckets" those of the first step, "gathers" and "reductions" of units.
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> lists;
};

inline constexpr double kLeastPeak = -0.3;  // percent
inline constexpr double kMostPeak = 1.0;

/// A file of tests/golden/engines, which the maker that it names ("made_by") prints.
struct EngineGoldens {
  std::string engine;
  std::string version;  // of what was run: "PyTorch 2.15.0"
  std::vector<EngineCase> cases;
};

/// Every engine in the order of the names, with the cases of all its files (fsdp2.json,
/// fsdp2.parts.json). Fails the program with what is wrong with one.
std::vector<EngineGoldens> engine_goldens();
/// Goldens of another file, whose name begins with the engine's: "DIR/fsdp2.json".
EngineGoldens engine_goldens(const std::filesystem::path& file);

/// How the planner and the engine differ in a figure of a case.
struct EngineDifference {
  std::string figure;
  std::string text;      // "+24064 B", "-4.5 %"
  double percent = 0;    // ours over the engine's, less one; of a list its sum
  bool accepted = true;  // equal, or within what a peak may be off by
};
/// Differences of every figure of the case, in order.
std::vector<EngineDifference> differences(const EngineCase& golden);

/// A row an engine in Markdown: version, cases, figures, how many differ and by how much.
std::string table_of(const std::vector<EngineGoldens>& goldens);

/// The line of the engine's own section: version, cases and the worst difference.
std::string line_of(const EngineGoldens& goldens);

/// tests/golden/engines/known_differences.json as it must be: every difference that is not
/// accepted, by engine, case and figure.
std::string known_differences(const std::vector<EngineGoldens>& goldens);

}  // namespace shardwise::test
