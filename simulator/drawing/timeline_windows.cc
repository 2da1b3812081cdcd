#include "simulator/drawing/timeline_windows.h"

#include <algorithm>

#include "planner/spec/plan/schedule_facts.h"

namespace shardwise::sim {
namespace {

constexpr double kLeastPair = 8;  // pixels of a forward and a backward pass of one chunk
constexpr double kEndPairs = 12;  // of them in the warm-up, and in the cool-down
constexpr double kMiddlePairs = 6;
constexpr double kPairsOfAStage =
    1.25;                             // the first micro-batch takes a pair a stage there and back
constexpr double kBetween = 14;       // pixels between windows
constexpr double kMostOfStep = 0.75;  // windows that show more than this are not worth the cuts

}  // namespace

std::vector<TimeWindow> drawn_windows(const Plan& plan, const Simulation& simulation, double left,
                                      double width) {
  const double length = simulation.timeline.length();
  std::vector<TimeWindow> whole = {{0, length, left, left + width}};
  const double pairs =
      static_cast<double>(simulation.program.num_microbatches) * chunks_of_copy(plan.layout);
  if (width >= kLeastPair * pairs) return whole;
  const double pair = length / pairs;
  const double end = pair * std::max(kEndPairs, kPairsOfAStage * plan.layout.pp);
  const double middle = pair * kMiddlePairs;
  const double drawn = 2 * end + middle;
  if (drawn > kMostOfStep * length) return whole;
  const double scale = (width - 2 * kBetween) / drawn;
  const double second = left + end * scale + kBetween;
  const double third = second + middle * scale + kBetween;
  return {{0, end, left, left + end * scale},
          {(length - middle) / 2, (length + middle) / 2, second, second + middle * scale},
          {length - end, length, third, left + width}};
}

}  // namespace shardwise::sim
