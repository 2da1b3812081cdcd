#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answers/helpful_changes.h"
#include "answers/plan_answer.h"
#include "answers/plan_question.h"
#include "planner/score/published.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "simulator/clock/simulate.h"
#include "simulator/comparison/kind_comparison.h"

namespace shardwise::sim {

/// Content that a page is made of.
struct PageContent {
  const Plan* plan = nullptr;
  const Simulation* simulation = nullptr;  // of the plan; its report has the assumptions
  const StepReport* estimate = nullptr;    // of the plan, explained: formulas and sources
  const StepReport* measured = nullptr;    // a run of the plan; null where there is none
  const TraceComparison* trace = nullptr;  // beside the plan; null where there is none
  const PlanQuestion* question = nullptr;  // null: no layouts are ranked
  const PlanAnswer* answer = nullptr;
  const std::vector<HelpfulChange>* levers = nullptr;       // of the answer; null: not asked for
  const std::vector<PublishedFigure>* published = nullptr;  // nearest to the plan; null: unknown
  std::string command;                                      // that makes the page again
  std::string version;
  std::string date;  // of the footer; empty: none

  const StepReport& report() const { return simulation->report; }
};

// The sections of a page, each whole by itself. Names of models, clusters and files are hostile.

std::string tiles_section(const PageContent& page);
std::string step_section(const PageContent& page);
/// Memory by phase and by stage against HBM; tables to the byte.
std::string memory_section(const PageContent& page);
/// Parts of the step, and communication by axis; measured ones beside them.
std::string time_section(const PageContent& page);
/// Operations that differ most; nothing where nothing was measured.
std::string measured_section(const PageContent& page);
/// A trace beside the simulated step; nothing without one.
std::string trace_section(const PageContent& page);
/// Rows of a measured and a predicted step, the most different first.
std::string operations_table(const std::vector<ComparedTime>& rows);
/// The ranked layouts, their front, and why the next are not taken; nothing without a ranking.
std::string layouts_section(const PageContent& page);
std::string front_section(const PageContent& page);
std::string why_not_section(const PageContent& page);
/// Section of what would help most; nothing where nobody asked.
std::string levers_section(const PageContent& page);
/// Errors of predictions of the published runs nearest to the plan; nothing where none is
/// known.
std::string published_section(const PageContent& page);
/// Assumptions and formulas with their sources, folded.
std::string reasons_section(const PageContent& page);

/// Whether a row of the answer is the page's plan.
bool is_the_plan(const PageContent& page, const PlanRow& row);

/// A heading with its section. \param note  beside it, plain text
std::string section(std::string_view id, std::string_view heading, std::string_view note,
                    const std::string& markup);
/// Shown on request; a reader without scripts unfolds it too.
std::string folded(std::string_view summary, const std::string& markup);

}  // namespace shardwise::sim
