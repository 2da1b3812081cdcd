#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/ranking.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise::view {

/// A legal layout of the question with what people compare.
struct LayoutRow {
  Layout layout;
  Bytes memory;  // peak of the worst stage, as nvidia-smi would show it
  Bytes upper;   // its upper bound
  Bytes needed;  // and what must fit: MemoryPeaks
  Bytes host_lacks;
  Seconds time;                      // of the step-time model
  bool bound = false;                // `time` is a lower bound: the exact time is not known yet
  std::optional<Seconds> simulated;  // the step on the virtual clock, of the best
  bool front = false;                // on the Pareto front of memory and time
  bool typed = false;                // the space does not list it: people asked for it
  Fit fit = Fit::fits;               // in Answer::usable
  std::int32_t worst_stage = 0;      // whose memory it is
  double mfu = 0;                    // of step(), as the next two; 0 = not known
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;  // 0 = no price known

  MemoryPeaks peaks() const { return {needed, memory, upper, host_lacks}; }
  /// Step of tables, as those of the command have it.
  Seconds step() const { return simulated.value_or(time); }
};

/// Numbers of layouts.
struct RowCounts {
  std::int64_t legal = 0;
  std::int64_t fit = 0;
  std::int64_t at_risk = 0;
  std::int64_t does_not_fit = 0;
};

/// The rows of one question.
struct Answer {
  std::uint64_t generation = 0;       // of the question that it answers
  std::vector<LayoutRow> rows;        // a row keeps its index while times become known
  std::vector<std::uint32_t> ranked;  // all of them, as the planner ranks by what is known
  RowCounts counts;
  Bytes usable;                                // memory that a layout may use
  std::string engine;                          // of all rows
  bool exact = false;                          // every time is known
  Objective objective = Objective::step_time;  // by which they are ranked
  std::string problem;                         // why there are no rows
};

}  // namespace shardwise::view
