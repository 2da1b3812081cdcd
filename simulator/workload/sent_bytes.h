#pragma once

#include <array>
#include <vector>

#include "planner/cost/collectives/tier_traffic.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// Bytes that a rank sends in a step for one purpose, in its group of one kind.
struct SentPart {
  Stream stream = Stream::all_gather;  // that it has, or would have at granularity `kernel`
  GroupKind group = GroupKind::world;
  std::array<Bytes, kMaxTiers> bytes{};  // over each tier
};

/// Bytes that one rank of a stage sends in a step. They are those of the collectives, as traffic_of
/// has them, those inside a layer's pass among them.
struct StageSent {
  TierTraffic traffic;
  std::vector<SentPart> parts;  // by stream, then group; no part is empty

  /// Whole bytes over a tier: the sum of the parts.
  Bytes over(std::size_t tier) const { return whole_bytes(traffic.bytes[tier]); }
  static Bytes whole_bytes(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }
};

/// By stage. \pre the program was lowered from the plan
std::vector<StageSent> sent_by_stage(const Plan& plan, const StepProgram& program);

}  // namespace shardwise::sim
