#include "simulator/comparison/tiles.h"

#include <fmt/format.h>

#include <functional>

#include "planner/estimate/interval_table.h"
#include "planner/spec/report/interval_words.h"
#include "planner/spec/report/verdict_words.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/comparison/compare.h"

namespace shardwise::sim {
namespace {

std::string_view origin_of(const StepReport& report) {
  return report.timeline ? "simulated" : "estimated";
}

/// "simulated; 90 %: 55.1 to 68.0 s".
std::string step_note(const Plan& plan, const StepReport& report) {
  std::string note(origin_of(report));
  const std::string interval =
      interval_words(report.step_time, report_intervals(plan.engine, plan.cluster).step);
  return interval.empty() ? note : note + "; " + interval;
}

/// A number that both reports have.
using Figure = std::function<double(const StepReport&)>;

/// Puts the measured number beside the predicted one, where there is one.
void beside(Tile& tile, const StepReport& report, const StepReport* measured, const Figure& figure,
            std::string (*text)(double)) {
  if (measured == nullptr) return;
  const double there = figure(*measured);
  if (there <= 0) return;
  tile.measured = text(there);
  tile.error = signed_percent(figure(report) / there - 1);
}

std::string seconds_text(double s) { return format_seconds(Seconds(s)); }

}  // namespace

Seconds exposed_communication(const StepReport& report) {
  Seconds sum;
  for (const AxisTime& axis : report.by_axis) {
    if (axis.axis != "offload") sum += axis.exposed;
  }
  return sum;
}

std::vector<Tile> tiles(const Plan& plan, const StepReport& report, const StepReport* measured) {
  std::vector<Tile> all;
  const auto add = [&](std::string_view id, std::string_view label, std::string value,
                       std::string note) -> Tile& {
    return all.emplace_back(
        Tile{id, label, std::move(value), std::move(note), Tone::plain, {}, {}});
  };
  const auto share = [](auto of) {
    return [of](const StepReport& r) { return of(r) / r.step_time; };
  };

  Tile& step =
      add("step_time", "step time", format_seconds(report.step_time), step_note(plan, report));
  beside(
      step, report, measured, [](const StepReport& r) { return r.step_time.value(); },
      seconds_text);

  Tile& mfu = add("mfu", "MFU", format_percent(report.mfu), "HFU " + format_percent(report.hfu));
  beside(
      mfu, report, measured, [](const StepReport& r) { return r.mfu; }, format_percent);

  Tile& tokens = add("tokens_per_s", "tokens a second", format_scaled(report.tokens_per_s),
                     format_scaled(report.tokens_per_s_per_gpu) + " a GPU");
  beside(
      tokens, report, measured, [](const StepReport& r) { return r.tokens_per_s; }, format_scaled);

  const Verdict& verdict = report.verdict;
  const std::string whole = format_bytes(plan.cluster.gpu.hbm_bytes);
  const std::string usable = format_bytes(verdict.usable);
  Tile& memory = add("peak_memory", "peak memory", format_bytes(verdict.point),
                     verdict.usable == plan.cluster.gpu.hbm_bytes
                         ? "of " + whole
                         : fmt::format("of {} usable, {} in all", usable, whole));
  memory.tone = tone_of(verdict.fit);
  if (measured != nullptr) {
    const Comparison both = compare(*measured, report);
    if (both.first_peak > Bytes(0)) {
      memory.measured = format_bytes(both.first_peak);
      memory.error = signed_percent(both.relative_peak());
      if (both.own_memory) memory.measured += ", own tensors";
    }
  }

  const auto bubble = share([](const StepReport& r) { return r.time.bubble; });
  Tile& idle = add("bubble", "pipeline bubble", format_percent(bubble(report)),
                   format_seconds(report.time.bubble) + " a step");
  beside(idle, report, measured, bubble, format_percent);

  const auto exposed = share(exposed_communication);
  Tile& waiting = add("exposed", "exposed communication", format_percent(exposed(report)),
                      format_seconds(exposed_communication(report)) + " a step");
  beside(waiting, report, measured, exposed, format_percent);

  const bool priced = report.dollars_per_1e9_tokens > 0;
  Tile& cost = add("cost", "cost", priced ? format_dollars(report.dollars_per_1e9_tokens) : "-",
                   priced ? "per 1e9 tokens" : "no price known");
  beside(
      cost, report, measured, [](const StepReport& r) { return r.dollars_per_1e9_tokens; },
      format_dollars);
  return all;
}

}  // namespace shardwise::sim
