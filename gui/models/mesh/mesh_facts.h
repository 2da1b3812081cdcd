#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/mesh/mesh_model.h"
#include "gui/models/question/predictions.h"
#include "planner/search/space/priced_orders.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/workload/sent_bytes.h"

namespace shardwise::view {

/// Meaning of a rank's colour.
enum class MeshColour : std::uint8_t { stage, time, memory, sent };
inline constexpr std::array<std::string_view, 4> kMeshColours = {"stage", "time", "memory", "sent"};

/// Work of a stage's rank in the simulated step.
struct StageFacts {
  Seconds computing;  // its compute stream runs something
  Bytes peak;         // of its memory, as the ledger has it
  sim::StageSent sent;
};

/// Facts about the ranks of a plan's layout.
struct MeshFacts {
  std::vector<StageFacts> stages;
  Seconds step;             // simulated
  std::size_t slowest = 0;  // the stage that computes longest
  /// Times by rank: ranks of a stage compute longer or shorter where they share links with others.
  /// Empty where they are all alike, or too many.
  std::vector<Seconds> computing;
  std::vector<PricedOrder> orders;  // best first; their step times are corrected
  std::string problem;              // why the step is not simulated: stages are empty
};
MeshFacts mesh_facts(const Plan& plan, const Predictions& by);

/// Shade of each box between the least and the most; 0.5 where all are alike. By stage while the
/// facts are not known. \param facts null while they are not
std::vector<double> box_shades(const MeshView& mesh, const MeshFacts* facts, MeshColour colour);
/// Time a rank computes.
Seconds computing_of(const MeshFacts& facts, const MeshBox& box);
/// "computes 50.1 s", of one stage.
std::string stage_text(const MeshFacts& facts, MeshColour colour, std::size_t stage);
/// The least and the most of the stages.
std::array<std::string, 2> stage_ends(const MeshFacts& facts, MeshColour colour);

/// Bytes that one rank of a stage sends in a step.
struct TrafficRow {
  std::string use;           // "parameter gather"
  std::string group;         // "dp_shard x cp"
  std::int64_t ranks = 1;    // of the group
  std::vector<Bytes> bytes;  // by tier
};
struct TrafficTable {
  std::vector<std::string> tiers;  // that are used
  std::vector<TrafficRow> rows;    // most bytes first
  std::vector<Bytes> totals;       // by tier: the report's
  std::vector<double> busy;        // by tier: share of the step that a link takes for them
};
TrafficTable traffic_table(const Plan& plan, const MeshFacts& facts, std::size_t stage);

}  // namespace shardwise::view
