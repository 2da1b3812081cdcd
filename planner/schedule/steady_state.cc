#include "planner/schedule/steady_state.h"

#include <algorithm>

namespace shardwise {
namespace {

/// Sums of as many as a thousand durations differ in their last bits.
constexpr double kRounding = 4e-13;

}  // namespace

TimelineState& SteadyState::next() {
  const std::size_t at = taken_++ % (2 * longest_ + 1);
  if (at == states_.size()) states_.emplace_back();
  TimelineState& state = states_[at];
  state.clocks.clear();
  state.marks.clear();
  state.alone.clear();
  return state;
}

void SteadyState::mark_front() {
  if (fronts_.size() < states_.size()) fronts_.resize(states_.size());
  fronts_[(taken_ - 1) % (2 * longest_ + 1)] = std::ranges::max(last().clocks);
}

bool SteadyState::found() {
  const auto place = [&](std::size_t ago) { return (taken_ - 1 - ago) % (2 * longest_ + 1); };
  const std::size_t kept = std::min(taken_, 2 * longest_ + 1);
  for (std::size_t period = 1; 2 * period < kept; ++period) {
    const double now = fronts_[place(0)];
    const double middle = fronts_[place(period)];
    if (std::abs(now - 2 * middle + fronts_[place(2 * period)]) > kRounding * now) continue;
    if (repeats(period)) return true;
  }
  return false;
}

bool SteadyState::repeats(std::size_t period) {
  const TimelineState& now = state(0);
  const TimelineState& middle = state(period);
  const TimelineState& first = state(2 * period);
  if (now.marks != middle.marks || middle.marks != first.marks ||
      now.clocks.size() != middle.clocks.size() || middle.clocks.size() != first.clocks.size()) {
    return false;
  }
  const auto front =
      static_cast<std::size_t>(std::ranges::max_element(now.clocks) - now.clocks.begin());
  const double rounding = kRounding * now.clocks[front];
  const double pace = now.clocks[front] - middle.clocks[front];
  moves_.resize(now.clocks.size());
  lasts_ = true;
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    moves_[i] = now.clocks[i] - middle.clocks[i];
    if (std::abs(moves_[i] - (middle.clocks[i] - first.clocks[i])) > rounding) return false;
    const bool lasts = moves_[i] == 0 || std::abs(moves_[i] - pace) <= rounding ||
                       (now.alone[i] && moves_[i] <= pace);
    lasts_ = lasts_ && lasts;
  }
  period_ = period;
  return true;
}

double SteadyState::late() const {
  constexpr double kLate = 64;  // periods
  const std::vector<double>& clocks = last().clocks;
  const double pace = std::ranges::max(moves_);
  double earliest = front();
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    if (moves_[i] > 0 && !last().alone[i]) earliest = std::min(earliest, clocks[i]);
  }
  return earliest > kLate * pace ? earliest : 0;
}

bool SteadyState::same(const TimelineState& a, const TimelineState& b) {
  if (a.marks != b.marks || a.clocks.size() != b.clocks.size()) return false;
  const double rounding = kRounding * std::ranges::max(a.clocks);
  return std::ranges::equal(a.clocks, b.clocks,
                            [&](double x, double y) { return std::abs(x - y) <= rounding; });
}

}  // namespace shardwise
