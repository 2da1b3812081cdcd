#include "cli/texts/fit_text.h"

#include "planner/spec/plan/names.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/report/verdict_words.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {

std::string fit_text(const PlanFit& fit, bool colour) {
  return paint(wrap(fit.line(), kTextWidth, 2), tone_of(fit.report.verdict.fit), colour) + "\n";
}

void write_fit(JsonWriter& json, const PlanFit& fit) {
  const Verdict& verdict = fit.report.verdict;
  json.member("fit", name_of(verdict.fit));
  json.member("memory_bytes", verdict.point.value());
  json.member("memory_needed_bytes", verdict.needed.value());
  json.member("usable_bytes", verdict.usable.value());
  json.member("step_time_s", fit.report.step_time.value());
  json.member("cheapest_fix", fit.change);
}

}  // namespace shardwise::cli
