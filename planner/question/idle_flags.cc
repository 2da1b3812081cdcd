#include "planner/question/idle_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "planner/estimate/estimate.h"
#include "planner/question/flags.h"
#include "planner/spec/report/report_json.h"

namespace shardwise {
namespace {

/// What is asked, once it is read.
struct Question {
  Subject subject;
  Layout layout;
};

std::optional<Question> read_question(const AskedJob& job, const AskedLayout& layout) {
  Result<Subject> subject = read_subject(job);
  if (!subject) return std::nullopt;
  const Result<Layout> read = read_layout(layout, *subject);
  if (!read) return std::nullopt;
  return Question{*std::move(subject), *read};
}

/// The numbers of a report, without what was asked and what was assumed.
std::string numbers_of(StepReport report) {
  report.plan_digest.clear();
  report.layout = {};
  report.assumptions.clear();
  report.explanations.clear();
  report.gemms.clear();
  report.verdict.cheapest_fix.clear();
  return report_json(report);
}

/// A flag as it is typed: a switch alone, or "=false" behind it.
std::string as_typed(const std::string& field, const std::string& text) {
  std::string flag = flag_of(field);
  if (text == "true") return flag;
  return flag + (text == "false" ? "=" : " ") + text;
}

bool asks_the_same(const Question& a, const Question& b) {
  return a.layout == b.layout && a.subject.job == b.subject.job &&
         a.subject.cluster.gpus == b.subject.cluster.gpus;
}

}  // namespace

std::vector<std::string> idle_flags(const AskedJob& job, const AskedLayout& layout,
                                    const StepReport& answer) {
  std::vector<std::string> idle;
  const std::optional<Question> asked = read_question(job, layout);
  if (!asked) return idle;
  const std::string numbers = numbers_of(answer);
  const auto look = [&](const std::string& field, const std::string& text, const AskedJob& j,
                        const AskedLayout& l) {
    const std::optional<Question> without = read_question(j, l);
    if (!without || asks_the_same(*asked, *without)) return;
    const Subject& s = without->subject;
    const StepReport other = estimate(s.model, s.cluster, s.job, s.engine, without->layout);
    if (numbers_of(other) != numbers) return;
    idle.push_back(as_typed(field, text));
  };
  for (const auto& [field, text] : job.texts) {
    // What a report has no number for: it serves other verbs.
    if (text.empty() || field == "tokens_total") continue;
    AskedJob others = job;
    others.texts.erase(field);
    look(field, text, others, layout);
  }
  for (const auto& [field, text] : layout.texts) {
    if (text.empty()) continue;
    AskedLayout others = layout;
    others.texts.erase(field);
    look(field, text, job, others);
  }
  return idle;
}

std::vector<Assumption> idle_flags_assumption(const AskedJob& job, const AskedLayout& layout,
                                              const StepReport& answer) {
  const std::vector<std::string> idle = idle_flags(job, layout, answer);
  if (idle.empty()) return {};
  return {{"no_effect", fmt::format("no effect here: {}", fmt::join(idle, ", ")), ""}};
}

}  // namespace shardwise
