#include "simulator/clock/rates.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace shardwise::sim {
namespace {

/// Rate of a rank's part before it is known: slower than nothing.
constexpr double kNotFound = std::numeric_limits<double>::infinity();

}  // namespace

Rates::Rates(const Workload& work, EventQueue& queue)
    : work_(work),
      queue_(queue),
      ranks_(work.actors.size()),
      meetings_(work.meetings),
      demands_(work.links.size()) {
  for (std::size_t a = 0; a < ranks_.size(); ++a) ranks_[a].links = work.actors[a].links;
}

std::int32_t Rates::add_lane(std::uint32_t actor, Stream stream) {
  const auto lane = static_cast<std::int32_t>(runs_.size());
  Run& run = runs_.emplace_back();
  run.actor = actor;
  run.stream = stream;
  const bool first = lane == 0 || run_of(lane - 1).actor != actor;
  if (first) ranks_[actor].first_lane = static_cast<std::uint32_t>(lane);
  return lane;
}

void Rates::join(Meeting& meeting, std::int32_t lane) {
  run_of(lane).next = meeting.lanes;
  meeting.lanes = lane;
}

void Rates::begin(std::int32_t lane, const CostPrice& price, double seconds, double now) {
  begin(lane, price, seconds, kNobody, now);
}

void Rates::begin(std::int32_t lane, const CostPrice& price, std::size_t meeting, double now) {
  meetings_[meeting].slowest = kNotFound;
  begin(lane, price, meetings_[meeting].duration, static_cast<std::int32_t>(meeting), now);
}

void Rates::begin(std::int32_t lane, const CostPrice& price, double seconds, std::int32_t meeting,
                  double now) {
  Run& run = run_of(lane);
  run.price = &price;
  run.remaining = seconds;
  run.since = now;
  run.rate = 0;  // settle finds it
  run.own = kNotFound;
  run.slowed = false;
  run.meeting = meeting;
  Rank& rank = ranks_[run.actor];
  const std::uint32_t bit = 1U << (static_cast<std::uint32_t>(lane) - rank.first_lane);
  rank.running |= bit;
  rank.stale |= bit;
  if (!computes(run.stream)) rank.moves_other = true;
  mark(run.actor);
}

void Rates::at_least(std::int32_t lane, double seconds, double now) {
  Run& run = run_of(lane);
  const double left = run.remaining - run.rate * (now - run.since);
  if (left >= seconds) return;
  run.remaining = seconds;
  run.since = now;
  if (run.rate > 0) queue_.set(run.actor, lane, now + seconds / run.rate);
}

void Rates::hold(std::int32_t lane, double until) {
  Run& run = run_of(lane);
  run.remaining = 0;
  queue_.set(run.actor, lane, until);
}

void Rates::end(std::int32_t lane) {
  const Run& run = run_of(lane);
  Rank& rank = ranks_[run.actor];
  rank.running &= ~(1U << (static_cast<std::uint32_t>(lane) - rank.first_lane));
  if (!computes(run.stream)) rank.moves_other = true;
  mark(run.actor);
}

void Rates::mark(std::uint32_t actor) {
  if (ranks_[actor].dirty) return;
  ranks_[actor].dirty = true;
  dirty_.push_back(actor);
}

void Rates::settle(double now) {
  const std::size_t touched = dirty_.size();
  for (std::size_t d = 0; d < touched; ++d) reload(dirty_[d]);
  for (const std::uint32_t actor : dirty_) {
    Rank& rank = ranks_[actor];
    rank.dirty = false;
    std::uint32_t left = rank.stale & rank.running;
    rank.stale = 0;
    for (; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::int32_t>(rank.first_lane) +
                        static_cast<std::int32_t>(std::countr_zero(left));
      Run& run = run_of(lane);
      const double rate = rate_of(run);
      if (run.meeting == kNobody) {
        set_rate(lane, rate, now);
      } else if (rate != run.own) {
        change_own(run, rate);
      }
    }
  }
  dirty_.clear();
  for (const std::int32_t m : changed_) {
    Meeting& meeting = meetings_[static_cast<std::size_t>(m)];
    meeting.changed = false;
    set_rate(meeting.leader, slowest_of(meeting), now);
  }
  changed_.clear();
}

/// Adds up what a rank asks for, on its own links and on those it shares.
void Rates::reload(std::uint32_t actor) {
  Rank& rank = ranks_[actor];
  if (!rank.moves_other) return reload_kernels(rank);
  rank.moves_other = false;
  const Load load = load_of(rank);
  for (std::uint32_t u = rank.links.begin; u != rank.links.end; ++u) {
    const LinkUse& use = work_.link_uses[u];
    const SharedLink& link = work_.links[use.link];
    const Demand& old = rank.load.links[link.tier];
    const Demand& now = load.links[link.tier];
    if (old == now) continue;
    Demand& demand = demands_[use.link];
    const bool was_crowded = demand.crowds(link.capacity);
    demand.out += use.ranks * (now.out - old.out);
    demand.in += use.ranks * (now.in - old.in);
    if (!was_crowded && !demand.crowds(link.capacity)) continue;
    for (std::uint32_t m = link.members.begin; m != link.members.end; ++m) {
      const std::uint32_t member = work_.link_members[m];
      ranks_[member].stale = ranks_[member].running;
      mark(member);
    }
  }
  if (load == rank.load) return;
  rank.load = load;
  rank.stale = rank.running;
}

/// Where the same transfers run as before.
void Rates::reload_kernels(Rank& rank) const {
  double bound = 0;
  double threads = 0;
  for (std::uint32_t left = rank.running; left != 0; left &= left - 1) {
    const Run& run = runs_[rank.first_lane + static_cast<std::uint32_t>(std::countr_zero(left))];
    threads += run.price->threads;
    if (computes(run.stream)) bound += run.price->memory_share;
  }
  if (bound == rank.load.bound && threads == rank.load.threads) return;
  rank.load.bound = bound;
  rank.load.threads = threads;
  rank.stale = rank.running;
}

Load Rates::load_of(const Rank& rank) const {
  Load load;
  for (std::uint32_t left = rank.running; left != 0; left &= left - 1) {
    const Run& run = runs_[rank.first_lane + static_cast<std::uint32_t>(std::countr_zero(left))];
    load.add(run.stream, *run.price);
  }
  return load;
}

/// Of one rank's part in an operation.
double Rates::rate_of(const Run& run) const {
  const Rank& rank = ranks_[run.actor];
  const CostPrice& price = *run.price;
  if (computes(run.stream)) return rank.load.compute_rate(price);
  double busiest = rank.load.memory_crowding(price);
  for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
    if (price.link_share[tier] == 0) continue;
    busiest = std::max(busiest, rank.load.links[tier].crowding(run.stream, 1));
  }
  for (std::uint32_t u = rank.links.begin; u != rank.links.end; ++u) {
    const SharedLink& link = work_.links[work_.link_uses[u].link];
    if (price.link_share[link.tier] == 0) continue;
    const Demand& demand = demands_[work_.link_uses[u].link];
    busiest = std::max(busiest, demand.crowding(run.stream, link.capacity));
  }
  if (!work_.noise.link_delay.empty()) busiest *= detour(run.actor, price);
  return busiest == 1 ? 1 : 1 / busiest;
}

/// How often longer a transfer takes where links of its node are gone.
double Rates::detour(std::uint32_t actor, const CostPrice& price) const {
  double longest = 1;
  for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
    const double delay = price.link_share[tier] * work_.noise.link_delay[actor][tier];
    longest = std::max(longest, 1 + delay);
  }
  return longest;
}

void Rates::change_own(Run& run, double own) {
  Meeting& meeting = meetings_[static_cast<std::size_t>(run.meeting)];
  if (run.own == meeting.slowest) --meeting.at_slowest;
  if (own < meeting.slowest) {
    meeting.slowest = own;
    meeting.at_slowest = 1;
  } else if (own == meeting.slowest) {
    ++meeting.at_slowest;
  }
  run.own = own;
  if (meeting.changed) return;
  meeting.changed = true;
  changed_.push_back(run.meeting);
}

/// Everybody is as slow as the slowest, who is looked for only when the last of them got faster.
double Rates::slowest_of(Meeting& meeting) const {
  if (meeting.at_slowest == 0) {
    meeting.slowest = kNotFound;
    for (std::int32_t lane = meeting.lanes; lane != kNobody; lane = run_of(lane).next) {
      const double own = run_of(lane).own;
      if (own > meeting.slowest) continue;
      meeting.at_slowest = own < meeting.slowest ? 1 : meeting.at_slowest + 1;
      meeting.slowest = own;
    }
  }
  return meeting.slowest;
}

void Rates::set_rate(std::int32_t lane, double rate, double now) {
  Run& run = run_of(lane);
  if (rate == run.rate) return;
  run.remaining = std::max(0.0, run.remaining - run.rate * (now - run.since));
  run.since = now;
  run.rate = rate;
  run.slowed |= rate < 1;
  queue_.set(run.actor, lane, now + run.remaining / rate);
}

}  // namespace shardwise::sim
