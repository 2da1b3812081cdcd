#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// What two engines are compared by. Memory is the framework's allocator's, of the fullest stage.
struct StepFigures {
  Seconds step;
  double mfu = 0;
  double tokens_per_s = 0;
  Bytes allocated;  // at the peak
  Bytes reserved;   // most
  Verdict verdict;  // of the memory ledger: does it fit the GPU
  /// What the allocator holds and no tensor does: rounding and fragmentation.
  Bytes fragmented() const { return reserved - allocated; }
};

/// One thing in which two engines differ.
struct MechanismEffect {
  std::string name;
  std::string what;     // of the first engine, becomes what of the second
  StepFigures in_turn;  // the first engine with this and all mechanisms before it of the second
  /// The first engine with this alone; nothing where it cannot stand alone.
  std::optional<StepFigures> alone;
};

/// The way from one engine to another, one mechanism after the other: the kernels first, so that
/// what follows is compared with equal kernels. The last of `effects` is `second` to the bit.
struct Versus {
  StepFigures first;
  StepFigures second;
  std::vector<MechanismEffect> effects;
  /// What the second engine can do besides when asked: Megatron-FSDP's user buffers and the double
  /// buffer that they imply.
  std::vector<MechanismEffect> beyond;

  /// With the second engine's kernels, the first engine otherwise.
  const StepFigures& equal_kernels() const;
};

/// Simulates both plans and every step of the way. Mechanisms in which the engines do not differ
/// are left out. \pre the plans differ in engine and layout only
Versus versus(const Plan& first, const Plan& second, const SimulationOptions& options);

}  // namespace shardwise::sim
