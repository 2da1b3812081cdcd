#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/plan_request.h"
#include "planner/search/search.h"
#include "planner/search/why_not.h"
#include "planner/spec/report.h"

namespace shardwise::cli {

/// A layout of the answer with the rates that people compare.
struct PlanRow {
  Candidate candidate;
  const ClusterSpec* cluster = nullptr;
  std::string engine;
  double mfu = 0;
  double tokens_per_s = 0;
  double dollars_per_1e9_tokens = 0;  // 0 = no price known
};

/// What was found on one count of GPUs or several.
struct PlanAnswer {
  std::vector<PlanRow> best;         // over all counts, best first
  std::vector<PlanRow> front;        // of memory and time, over all counts
  std::vector<SearchCounts> counts;  // by engine, over all counts
  std::vector<std::string> held;     // fields with one value in the space
  Bytes usable;
  // When nothing fits.
  std::vector<PlanRow> smallest;               // the layout that is nearest to it
  std::optional<std::string> cheapest_change;  // a single change after which something does
};

/// Rows that fit 100 columns; columns that are the same in all rows are left out, the engine's only
/// when there is no choice of engines.
std::string layouts_text(const std::vector<PlanRow>& rows, bool several_engines, bool colour);

/// "9,446 legal layouts: 6,156 ranked, 3,290 do not fit, 0 at risk; …".
std::string counts_text(const std::vector<SearchCounts>& counts, bool colour);

/// What each rule dropped, and which fields no layout varied.
std::string rules_text(const PlanAnswer& answer, bool colour);

/// Why the winner won over the layouts that were asked about.
std::string why_not_text(const WhyNot& answer, bool colour);

/// What a layout has that most do not: "order tp-pp-…, ulysses, offloads optimizer".
std::string besides(const Layout& layout);

/// The same for a program, schema "shardwise.why_not/1".
std::string why_not_json(const WhyNot& answer);

/// The whole answer for a program, schema "shardwise.search/1". `report` is of the best.
std::string plan_json(const PlanQuestion& question, const PlanAnswer& answer,
                      const StepReport* report);

}  // namespace shardwise::cli
