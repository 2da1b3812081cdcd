#include "answers/html/make_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "answers/html/report_page.h"
#include "answers/question_of_plan.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/lowering/lower.h"
#include "planner/question/advice.h"
#include "planner/question/flags.h"
#include "planner/question/subject.h"
#include "planner/score/published.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {
namespace {

/// Of the plan, with formulas; what would make it fit where it does not.
StepReport explained(const Plan& plan) {
  StepReport report =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::explained);
  if (report.verdict.fit != Fit::does_not_fit) return report;
  return with_advice(std::move(report), plan.model, plan.cluster, plan.job, plan.engine,
                     plan.layout);
}

/// What is predicted of the plan by the step-time model and by its simulation, found beside what
/// the caller does until it asks.
class Predicting {
 public:
  explicit Predicting(const Plan& plan)
      : found_(std::async(std::launch::async, [&plan] {
                 Prediction made{explained(plan), simulate(plan)};
                 made.simulation.report.verdict.cheapest_fix = made.estimate.verdict.cheapest_fix;
                 note_curves(plan.model, plan.cluster, plan.job,
                             made.simulation.report.assumptions);
                 return made;
               }).share()) {}

  const StepReport& estimate() const { return found_.get().estimate; }
  const Simulation& simulation() const { return found_.get().simulation; }

 private:
  struct Prediction {
    StepReport estimate;
    Simulation simulation;
  };
  std::shared_future<Prediction> found_;
};

/// The trace beside the step, simulated at its granularity.
TraceComparison beside_trace(const TracedRun& run, const Plan& plan) {
  SimulationOptions options;
  if (!run.ours() || run.head.granularity == "kernel") options.granularity = Granularity::kernel;
  return compare_trace(run, plan, simulate(plan, options));
}

}  // namespace

std::string command_of(const PageFiles& files, std::size_t top, bool levers,
                       const std::string& date) {
  const bool itself = files.plan.empty();
  std::string text = "shardwise report " + shell_word(itself ? files.output : files.plan);
  if (!files.measured.empty()) text += " " + shell_word(files.measured);
  if (!files.trace.empty()) text += " --trace " + shell_word(files.trace);
  if (top != PageRequest().top) text += fmt::format(" --top {}", top);
  if (levers) text += " --levers";
  if (!date.empty()) text += " --date " + shell_word(date);
  return text + " -o " + shell_word(itself ? "again.html" : files.output);
}

Diagnostics check_measured(const StepReport& report, const std::string& file, const Plan& plan) {
  const auto wrong = [&](const char* path, const std::string& message, const char* hint) {
    return Diagnostics{{file, 0, 0, path, message, hint}};
  };
  if (report.origin != "measured") {
    return wrong("/origin", report.origin + ", but a measured report is wanted",
                 "shardwise compare shows two predictions side by side");
  }
  const std::string wanted = digest(plan);
  if (report.plan_digest == wanted) return {};
  return wrong("/plan_digest",
               report.plan_digest.empty() ? "missing: nothing says that this plan ran"
                                          : fmt::format("of another plan: {:.12}…, not {:.12}…",
                                                        report.plan_digest, wanted),
               "give the report of a run of this plan");
}

Result<MadePage> make_page(const PageRequest& request, const SayPlanning& say) {
  const Plan& plan = *request.plan;
  const Diagnostics long_step = too_many_operations(plan, Granularity::layer);
  if (!long_step.empty()) return long_step;
  const Predicting predicted(plan);
  constexpr std::size_t kPublished = 5;  // runs of each quantity
  std::future<std::vector<PublishedFigure>> published = std::async(std::launch::async, [&plan] {
    return nearest_measured(plan, published_figures(), kPublished);
  });
  PageContent page;
  page.plan = &plan;
  page.measured = request.measured;
  std::optional<TraceComparison> compared;
  if (request.traced != nullptr) {
    compared = beside_trace(*request.traced, plan);
    if (compared->step.measured.length <= Seconds(0)) {
      return Diagnostics{
          {request.trace_file, 0, 0, "/traceEvents", "its steps have zero length", ""}};
    }
    page.trace = &*compared;
  }
  PlanQuestion question = question_of(plan, std::max<std::size_t>(1, request.top));
  question.known_step = [&](const Plan& other) -> std::optional<Seconds> {
    const bool same = other.layout == plan.layout && other.job == plan.job &&
                      other.cluster == plan.cluster;  // model and engine are the question's
    if (!same) return std::nullopt;
    return predicted.simulation().report.step_time;
  };
  // Nothing where no layout of the usual space may run: the plan's is of the full one.
  std::optional<PlanAnswer> ranked;
  if (request.top > 0) {
    Result<PlanAnswer> found = answer(question, say);
    if (found) ranked = *std::move(found);
  }
  if (ranked) {
    page.question = &question;
    page.answer = &*ranked;
  }
  std::vector<HelpfulChange> levers;
  if (request.levers && ranked && !ranked->best.empty()) {
    levers =
        helpful_changes(question, *ranked, {say, engines_of_today(question.clusters.front()), {}});
    page.levers = &levers;
  }
  page.simulation = &predicted.simulation();
  page.estimate = &predicted.estimate();
  page.command = request.command;
  page.version = request.version;
  page.date = request.date;
  const std::vector<PublishedFigure> nearest = published.get();
  page.published = &nearest;
  std::string text = report_page(page);
  return MadePage{std::move(text), predicted.simulation().report};
}

}  // namespace shardwise::sim
