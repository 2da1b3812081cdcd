#pragma once

#include <cstdint>
#include <vector>

#include "simulator/clock/event_queue.h"
#include "simulator/clock/sharing.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// Lanes that wait for one another at a slot, and end together.
struct Meeting {
  std::int32_t missing = 0;       // that have not come
  std::int32_t lanes = kNobody;   // those that have: a list by Rates::next_at_meeting
  std::int32_t leader = kNobody;  // its lane carries the due time
  std::int32_t at_slowest = 0;    // lanes whose own rate is `slowest`
  double slowest = 0;             // of the rates that each rank by itself would allow
  double duration = 0;            // alone, of the one that takes longest
  bool changed = false;           // since its rate was last found
};

/// Rates of everything that runs, as simulator/clock/sharing.h has it, and so when it is due. A
/// lane is a stream of a rank and runs one operation at a time; lanes are numbered rank by rank.
/// Only ranks on which something began or ended, and those on a crowded link with them, are looked
/// at again; an operation whose rate stays keeps its due time to the bit.
class Rates {
 public:
  /// Due times go to `queue`, which has room for every lane.
  Rates(const Workload& work, EventQueue& queue);

  /// Adds the next lane: a stream of `actor`. \returns its number \pre actors come in order
  std::int32_t add_lane(std::uint32_t actor, Stream stream);

  Meeting& meeting(std::size_t m) { return meetings_[m]; }
  std::int32_t next_at_meeting(std::int32_t lane) const { return run_of(lane).next; }
  /// Puts a lane on the list of those that have come.
  void join(Meeting& meeting, std::int32_t lane);

  /// A lane moves on for `seconds` alone, by itself or, from when all have come, at a meeting.
  void begin(std::int32_t lane, const CostPrice& price, double seconds, double now);
  void begin(std::int32_t lane, const CostPrice& price, std::size_t meeting, double now);
  /// Keeps a lane running for `seconds` alone from now on, if it would end sooner.
  void at_least(std::int32_t lane, double seconds, double now);
  /// Whether what a lane runs, or ran last, was ever slower than alone.
  bool slowed(std::int32_t lane) const { return run_of(lane).slowed; }
  /// Keeps a lane that has done its work running until a time.
  void hold(std::int32_t lane, double until);
  void end(std::int32_t lane);

  /// Finds rates and due times after all that began or ended at `now`.
  void settle(double now);

 private:
  /// Run of a lane.
  struct Run {
    const CostPrice* price = nullptr;
    double remaining = 0;  // seconds alone, at `since`
    double since = 0;
    double rate = 0;  // 1 = as fast as alone; of a meeting, its leader's
    double own = 0;   // at a meeting: what this rank by itself would allow
    std::int32_t meeting = kNobody;
    std::int32_t next = kNobody;  // of the lanes at the meeting
    std::uint32_t actor = 0;
    Stream stream = Stream::compute;
    bool slowed = false;  // since it began
  };
  struct Rank {
    Load load;
    std::uint32_t first_lane = 0;
    std::uint32_t running = 0;  // a bit for each lane, from the first
    std::uint32_t stale = 0;    // and for each whose rate is to be found
    IndexRange links;           // of Workload::link_uses
    bool dirty = false;         // something began or ended here, or on a crowded link
    bool moves_other = false;   // a transfer did, since the load was added up
  };

  Run& run_of(std::int32_t lane) { return runs_[static_cast<std::size_t>(lane)]; }
  const Run& run_of(std::int32_t lane) const { return runs_[static_cast<std::size_t>(lane)]; }
  void begin(std::int32_t lane, const CostPrice& price, double seconds, std::int32_t meeting,
             double now);
  void mark(std::uint32_t actor);
  void reload(std::uint32_t actor);
  void reload_kernels(Rank& rank) const;
  Load load_of(const Rank& rank) const;
  double rate_of(const Run& run) const;
  double detour(std::uint32_t actor, const CostPrice& price) const;
  void change_own(Run& run, double own);
  double slowest_of(Meeting& meeting) const;
  void set_rate(std::int32_t lane, double rate, double now);

  const Workload& work_;
  EventQueue& queue_;
  std::vector<Run> runs_;  // by lane
  std::vector<Rank> ranks_;
  std::vector<Meeting> meetings_;
  std::vector<Demand> demands_;  // of shared links
  std::vector<std::uint32_t> dirty_;
  std::vector<std::int32_t> changed_;  // meetings
};

}  // namespace shardwise::sim
