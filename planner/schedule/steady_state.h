#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardwise {

// A step repeats the same operations for each micro-batch. Once the timeline repeats too, the
// repetitions that are left take a multiple of its period: nothing is swept or stored for each of
// them. docs/pipeline_time.md, "Steady states", has the argument.

/// Everything about a timeline between two repetitions that a later operation depends on.
struct TimelineState {
  std::vector<double> clocks;  // moments, in seconds from the step's begin
  std::vector<double> marks;   // everything else: counts, flags, elements
  std::vector<bool> alone;     // by clock: it waits for no other clock
};

/// Reads the state of a timeline, or moves its clocks.
class StateVisit {
 public:
  explicit StateVisit(TimelineState& into) : into_(&into) {}
  /// Moves each clock by `times` its part of `moves`.
  StateVisit(std::span<const double> moves, double times) : moves_(moves), times_(times) {}
  /// Moves all clocks by so many seconds.
  explicit StateVisit(double seconds) : times_(seconds) {}

  void clock(double& moment) { visit(moment, false); }
  /// A clock that waits for no other and moves evenly.
  void alone(double& moment) { visit(moment, true); }
  void mark(double value) {
    if (into_ != nullptr) into_->marks.push_back(value);
  }

 private:
  void visit(double& moment, bool alone) {
    if (into_ == nullptr) {
      moment += moves_.empty() ? times_ : moves_[next_++] * times_;
      return;
    }
    into_->clocks.push_back(moment);
    into_->alone.push_back(alone);
  }

  TimelineState* into_ = nullptr;
  std::span<const double> moves_;
  double times_ = 0;
  std::size_t next_ = 0;
};

/// Finds the period of a timeline from its states after each repetition.
class SteadyState {
 public:
  /// \param longest  period that is looked for, in repetitions
  explicit SteadyState(std::size_t longest) : longest_(longest) {}

  /// The state after the next repetition.
  template <class Timeline>
  void add(Timeline& timeline) {
    TimelineState& state = next();
    StateVisit visit(state);
    timeline.visit(visit);
    mark_front();
  }
  /// Whether all clocks moved in one period as in the period before it, and no mark changed.
  bool found();
  std::size_t period() const { return period_; }  // repetitions, once found
  const std::vector<double>& moves() const { return moves_; }
  /// Whether every clock moved as far as the front, or not at all, or, alone, less: then nothing
  /// can overtake anything, and all further periods are the same.
  bool lasts() const { return lasts_; }
  const TimelineState& last() const { return state(0); }
  /// Seconds that all clocks may be set back by, where they are so late that rounding would blur
  /// their moves: no clock that others wait for then falls below zero. 0 where they are early.
  double late() const;
  /// The latest clock of the last state.
  double front() const { return fronts_[(taken_ - 1) % (2 * longest_ + 1)]; }
  /// Whether two states are the same but for rounding. \pre as many clocks
  static bool same(const TimelineState& a, const TimelineState& b);
  /// Looks for a period among later states only.
  void forget() { taken_ = 0; }

 private:
  /// `ago` repetitions before the last.
  const TimelineState& state(std::size_t ago) const {
    return states_[(taken_ - 1 - ago) % (2 * longest_ + 1)];
  }
  TimelineState& next();
  void mark_front();
  bool repeats(std::size_t period);

  std::size_t longest_;
  std::size_t taken_ = 0;
  std::size_t period_ = 0;
  bool lasts_ = false;
  std::vector<double> moves_;
  std::vector<TimelineState> states_;  // a ring
  std::vector<double> fronts_;         // latest clock of each
};

/// Runs what a timeline repeats `left` times more, as far as it must be run.
///
/// Two periods in which every clock moves alike are closed at once. Where clocks move at different
/// paces, one may overtake another later: the period that would be the last is run on trial, and if
/// it moves the clocks the same way, so do all before it (moments are convex in those they wait
/// for). If not, the last period that does is looked for by halving. A timeline that finds no
/// period in kMostRepetitions goes on at the mean pace of its front over the second half of them.
/// \param timeline  `void repeat()`, `void visit(StateVisit&)`; what `save()` returns is given back
///                  by `void restore()`
template <class Timeline>
class Repetitions {
 public:
  Repetitions(Timeline& timeline, std::size_t longest) : timeline_(timeline), steady_(longest) {}

  void run(std::int64_t left) {
    if (left < kFew) {
      for (; left > 0; --left) timeline_.repeat();
      return;
    }
    steady_.add(timeline_);
    std::int64_t next_trial = 0;
    double halfway = 0;
    for (std::int64_t taken = 0; left > 0;) {
      timeline_.repeat();
      --left;
      ++taken;
      steady_.add(timeline_);
      if (taken == kMostRepetitions / 2) halfway = steady_.front() - shifted_;
      if (taken == kMostRepetitions) {
        go_on(halfway, left);
        left = 0;
      }
      if (!steady_.found() || taken < next_trial) continue;
      const auto period = static_cast<std::int64_t>(steady_.period());
      if (left < period) continue;
      if (const double late = steady_.late(); late > 0) {
        shift(-late);
        steady_.forget();
        steady_.add(timeline_);
        continue;
      }
      const std::int64_t closed = steady_.lasts() ? all(left / period) : most(left / period);
      left -= closed * period;
      if (left < period) break;
      if (closed > 0) steady_.forget();
      next_trial = closed > 0 ? taken : 2 * taken;
    }
    for (; left > 0; --left) timeline_.repeat();
    shift(-shifted_);
  }

  static constexpr std::int64_t kMostRepetitions = 4096;

 private:
  static constexpr std::int64_t kFew = 3;

  void move(std::span<const double> moves, double times) {
    StateVisit visit(moves, times);
    timeline_.visit(visit);
  }
  /// All clocks, which changes nothing but their rounding.
  void shift(double seconds) {
    if (seconds == 0) return;
    StateVisit visit(seconds);
    timeline_.visit(visit);
    shifted_ += seconds;
  }
  std::int64_t all(std::int64_t periods) {
    move(steady_.moves(), static_cast<double>(periods));
    return periods;
  }

  /// Runs the last of so many periods. \returns whether it moves the clocks as those before it
  bool holds(const TimelineState& begin, std::int64_t periods) {
    const auto n = static_cast<double>(periods);
    move(steady_.moves(), n - 1);
    for (std::size_t i = 0; i < steady_.period(); ++i) timeline_.repeat();
    TimelineState expected = begin;
    for (std::size_t i = 0; i < expected.clocks.size(); ++i) {
      expected.clocks[i] += n * steady_.moves()[i];
    }
    TimelineState end;
    StateVisit visit(end);
    timeline_.visit(visit);
    return SteadyState::same(expected, end);
  }

  /// Closes as many periods as are the same, up to so many. \returns how many
  std::int64_t most(std::int64_t periods) {
    const TimelineState begin = steady_.last();
    const auto before = timeline_.save();
    if (holds(begin, periods)) return periods;
    std::int64_t holding = 0;
    for (std::int64_t fails = periods; fails - holding > 1;) {
      timeline_.restore(before);
      const std::int64_t middle = holding + (fails - holding) / 2;
      (holds(begin, middle) ? holding : fails) = middle;
    }
    timeline_.restore(before);
    return all(holding);
  }

  /// At the mean pace of the front since `halfway`.
  void go_on(double halfway, std::int64_t left) {
    const double pace =
        2 * (steady_.front() - shifted_ - halfway) / static_cast<double>(kMostRepetitions);
    shift(pace * static_cast<double>(left));
    shifted_ -= pace * static_cast<double>(left);
  }

  Timeline& timeline_;
  SteadyState steady_;
  double shifted_ = 0;  // seconds by which all clocks are later than they are
};

}  // namespace shardwise
