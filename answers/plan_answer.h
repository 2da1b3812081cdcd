#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "answers/plan_question.h"
#include "planner/estimate/estimate.h"
#include "planner/search/advice/relief.h"
#include "planner/search/advice/why_not.h"
#include "planner/search/search.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/error_interval.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::sim {

/// A layout of the answer with the rates that people compare.
struct PlanRow {
  Candidate candidate;  // `engine` counts the engines of the question
  const ClusterSpec* cluster = nullptr;
  std::string engine;
  std::optional<Seconds> simulated;  // the step on the virtual clock
  bool tied = false;                 // with the best: either may be the faster one
  double mfu = 0;                    // of step(), as the next two
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;  // 0 = no price known

  /// Step by which rows rank: simulated where it was, else of the step-time model.
  Seconds step() const { return simulated.value_or(candidate.cost.step_time); }
};

/// Answer of one engine of the question.
struct EngineAnswer {
  const EngineProfile* engine = nullptr;
  SearchCounts counts;          // over all counts of GPUs
  std::optional<PlanRow> best;  // nothing when no layout fits
  Diagnostics refused;          // why no layout is legal
};

/// A single change of the question after which a layout fits.
struct WayOut {
  Relief relief;                          // `best.engine` counts the engines that were tried
  const EngineProfile* engine = nullptr;  // of the layout, where several were tried
};

/// Facts to say when no layout fits.
struct NothingFits {
  std::vector<PlanRow> nearest;     // one: the best at risk, or else the smallest
  bool at_risk = false;             // its upper bound alone does not fit
  std::optional<WayOut> way_out;    // the cheapest, by GPU time a step
  std::optional<WayOut> more_gpus;  // the fewest on which a layout fits
};

/// Answer on one count of GPUs or several.
struct PlanAnswer {
  std::vector<PlanRow> best;          // over all counts, best first; empty when nothing fits
  std::vector<PlanRow> front;         // of memory and the step-time model, over all counts
  std::vector<EngineAnswer> engines;  // as the question names them
  std::vector<std::string> held;      // fields with one value in the space
  Bytes usable;
  ErrorInterval tie;        // of the ratio of two steps: rows tie where the best one's contains 1
  std::string unsimulated;  // why no row was simulated; empty when the best were
  NothingFits nothing;

  std::vector<SearchCounts> counts() const;  // by engine
};

/// Says what is going on, for a line of progress.
using SayPlanning = std::function<void(const std::string&)>;

/// Searches every engine and count of GPUs, takes an engine where the question names none, and
/// ranks the best layouts by their simulated steps. The same question has the same answer for any
/// number of threads. \returns the answer, or what is wrong with the question: a lock, or that no
/// layout is legal
Result<PlanAnswer> answer(const PlanQuestion& question, const SayPlanning& say = {});

/// Why the best layout has not these values: by the step-time model, on the engine and the GPUs of
/// the answer's first row.
Result<WhyNot> why_not(const PlanQuestion& question, const PlanAnswer& answer,
                       const std::vector<std::pair<std::string, std::string>>& values);

/// Intervals of a row's predictions; none of an engine that is not one of the program's.
ReportIntervals intervals_of(const PlanRow& row);

/// The plan of a row.
Plan plan_of(const PlanQuestion& question, const PlanRow& row);

}  // namespace shardwise::sim
