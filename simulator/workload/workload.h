#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/software/time_rules.h"
#include "planner/recorded/recorded_step.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/links.h"

namespace shardwise::sim {

// A step program made ready for the engines: flat arrays, no strings, nothing to look up. All times
// are plain seconds.

/// In place of the number of a lane or a meeting: none.
inline constexpr std::int32_t kNobody = -1;

/// Price of one OpCost, as an engine needs it.
struct CostPrice {
  double seconds = 0;      // alone on the rank
  double launches = 0;     // kernels the host issues for it
  OverlapTax tax;          // share of a rank's compute that it takes away while it runs
  double excess = 0;       // by how much of the rest of it the slowest GPU makes it longer
  double gemm_share = 0;   // of compute: matrix products
  double moved_share = 0;  // and communication inside the operation, which no one slows down
  /// Share of one link of each tier, at its full rate, that one rank asks for while it runs alone.
  std::array<double, kMaxTiers> link_share{};
  /// Share of the GPU's memory bandwidth that a transfer takes while it runs alone; of compute,
  /// share of its time that goes to kernels which memory bandwidth limits.
  double memory_share = 0;
  /// On a CPU that ranks share: threads that it runs on, and of how many in all it would lose
  /// nothing. 0 = an accelerator.
  double threads = 0;
  double room = 0;
  /// Transfers inside a layer's pass, one after the other: entries of the same list of prices. They
  /// begin with the pass and ask for links while they run; a pass ends once `rest`
  /// seconds have run after the last of them, when a crowded link made that late.
  IndexRange inside{};
  double rest = 0;
};
/// By stage, then by index into StageProgram::costs; after those, the transfers inside passes.
using Prices = std::vector<std::vector<CostPrice>>;

/// Rules by which the host feeds the device.
struct LaunchRules {
  double issue = 0;  // host time to issue one kernel; 0 = the host is never late
  /// CUDA_DEVICE_MAX_CONNECTIONS=1: one hardware queue, so that operations start in issue order
  /// whatever their streams. docs/simulator.md, "Launch".
  bool in_issue_order = false;
  /// The host waits for each message between stages before it issues what follows; for the norm of
  /// the gradients before the optimizer. docs/simulator.md, "Launch".
  bool waits_for_messages = false;
  bool waits_for_norm = false;
};

struct WorkOp {
  double duration = 0;      // alone
  std::uint32_t index = 0;  // of StageProgram::operations
  IndexRange waits;         // of StageProgram::indices
  std::int32_t slot = -1;   // of Workload::slots; -1: meets nobody
  std::int32_t cost = 0;    // of StageProgram::costs
};

/// The program of one pipeline stage.
struct WorkProgram {
  const StageProgram* program = nullptr;
  std::span<const CostPrice> prices;  // by cost
  std::vector<WorkOp> operations;     // stream by stream, each in program order
  std::array<std::uint32_t, kStreams + 1> stream_begin{};
  std::vector<std::int32_t> slot_of;  // by index into StageProgram::operations, as WorkOp::slot
  std::vector<double> issued;       // first kernel of operation i is with the device; empty: always
  std::vector<double> issued_last;  // and its last
  /// The operation whose end both times count from, since the host waits for it; kFromBegin: the
  /// step's begin.
  std::vector<std::uint32_t> issued_from;
};
inline constexpr std::uint32_t kFromBegin = kNoOperation;

/// A place of the program where ranks wait for one another: the two ends of a message, or a
/// collective of which several ranks are simulated.
struct Slot {
  std::uint32_t first_meeting = 0;  // the meeting of group g is first_meeting + g
  std::int32_t participants = 0;    // of one meeting; 0 = those of the group
  std::int32_t group = 0;           // of Actor::groups
};

/// A link that several ranks share. Members are actors; `capacity` is in links of its tier.
struct SharedLink {
  std::size_t tier = 0;
  double capacity = 1;
  IndexRange members;  // of Workload::link_members
};

/// That an actor is on a shared link, with so many of the ranks it stands for.
struct LinkUse {
  std::uint32_t link = 0;
  std::int32_t ranks = 1;
};

/// One simulated rank.
struct Actor {
  std::uint32_t program = 0;  // of Workload::programs
  std::size_t base = 0;       // its operation i is number base + i of a timeline
  std::uint32_t groups = 0;   // of Workload::groups: its group for each entry of group_kinds
  std::int64_t rank = 0;      // the lowest rank it stands for
  IndexRange links;           // of Workload::link_uses
};

/// One number for each tier of links.
using TierFactors = std::array<double, kMaxTiers>;

/// Makes operations take another time on each rank; none by default.
struct Noise {
  std::uint64_t seed = 0;
  double jitter = 0;                   // relative deviation of every operation
  std::vector<double> compute_factor;  // by actor: of kernels; empty = 1
  /// By actor and tier: by how many times its link share a transfer takes longer, since the links
  /// that are left carry those that are gone. Empty = 0.
  std::vector<TierFactors> link_delay;
};

/// Ready to run. Refers to the StepProgram and the Prices it was made from.
struct Workload {
  std::vector<WorkProgram> programs;
  std::vector<Slot> slots;
  std::vector<Actor> actors;
  std::vector<std::uint32_t> actor_of_rank;        // by rank; empty: each stage has one actor
  std::vector<std::uint32_t> groups;               // actor by actor
  std::vector<std::vector<std::int32_t>> members;  // actors in each group of an entry of groups
  std::vector<SharedLink> links;
  std::vector<std::uint32_t> link_members;
  std::vector<LinkUse> link_uses;  // actor by actor
  std::size_t meetings = 0;
  std::size_t operations = 0;  // of all actors
  LaunchRules launch;
  Noise noise;

  /// Seconds that an operation takes alone on an actor.
  double duration(std::uint32_t actor, const WorkOp& op) const {
    return noise.jitter == 0 && noise.compute_factor.empty() ? op.duration : noisy(actor, op);
  }
  double noisy(std::uint32_t actor, const WorkOp& op) const;
  /// The group of an actor that meets at a slot, and how many actors meet there.
  std::uint32_t group_at(const Actor& actor, const Slot& slot) const {
    return groups[actor.groups + static_cast<std::uint32_t>(slot.group)];
  }
  std::int32_t participants(const Slot& slot, std::uint32_t group) const {
    return slot.participants > 0 ? slot.participants
                                 : members[static_cast<std::size_t>(slot.group)][group];
  }
  const StageProgram& program_of(const Actor& actor) const {
    return *programs[actor.program].program;
  }
};

/// One representative rank for each pipeline stage; only messages and collectives over several
/// stages are meetings, the other ranks of a collective arrive as the representative does.
/// \pre prices has the program's stages and costs; an operation waits for earlier ones only; no
/// link is shared by several ranks
Workload representatives(const StepProgram& program, const Prices& prices,
                         const LaunchRules& launch = {});

/// One representative of each class of ranks of `layout` that behave alike on shared links.
/// \pre as above, and program.stages.size() == layout.pp
Workload representatives(const StepProgram& program, const Prices& prices, const Layout& layout,
                         std::span<const LinkKind> links, const LaunchRules& launch = {});

/// Every rank of `layout`; every collective is a meeting of the ranks of its group.
Workload all_ranks(const StepProgram& program, const Prices& prices, const Layout& layout,
                   std::span<const LinkKind> links = {}, const LaunchRules& launch = {});

}  // namespace shardwise::sim
