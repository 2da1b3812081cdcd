#include "planner/spec/report/interval_words.h"

#include <fmt/format.h>

#include <string_view>

#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// "55.1 to 68.0 s": one unit is enough where both have it.
std::string between(std::string low, const std::string& high) {
  const std::string unit = high.substr(high.rfind(' '));
  if (low.ends_with(unit)) low.resize(low.size() - unit.size());
  return low + " to " + high;
}

std::string between(Seconds time, const ErrorInterval& interval) {
  return between(format_seconds(time * interval.low), format_seconds(time * interval.high));
}

std::string between(Bytes amount, const ErrorInterval& interval) {
  return between(format_bytes(times(amount, interval.low)),
                 format_bytes(times(amount, interval.high)));
}

const std::string& level_words() {
  static const std::string kWords = fmt::format("{:.0f} %: ", kIntervalLevel * 100);
  return kWords;
}

}  // namespace

std::string interval_words(Seconds time, const ErrorInterval& interval) {
  return interval.known() ? level_words() + between(time, interval) : "";
}

std::string interval_words(Bytes amount, const ErrorInterval& interval) {
  return interval.known() ? level_words() + between(amount, interval) : "";
}

std::string time_with_interval(Seconds time, const ErrorInterval& interval) {
  const std::string text = format_seconds(time);
  if (!interval.known()) return text;
  return fmt::format("{} ({})", text, interval_words(time, interval));
}

std::string intervals_line(const StepReport& report, const ReportIntervals& known) {
  const MemoryNumbers numbers = memory_numbers(report);
  std::string memory;
  const auto add = [&](std::string_view name, Bytes amount, const ErrorInterval& interval) {
    if (!interval.known() || amount <= Bytes(0)) return;
    const std::string ends = between(amount, interval);
    const std::string unit = ends.substr(ends.rfind(' '));
    if (memory.ends_with(unit)) memory.resize(memory.size() - unit.size());
    memory += fmt::format("{}{} {}", memory.empty() ? "" : ", ", name, ends);
  };
  add("allocated", numbers.allocated, known.allocated);
  add("nvidia-smi", numbers.nvidia_smi, known.nvidia_smi);
  std::string text = known.step.known() ? "step " + between(report.step_time, known.step) : "";
  if (!text.empty() && !memory.empty()) text += "; ";
  text += memory;
  return text.empty() ? "" : level_words() + text;
}

std::string calibrated_on(const ReportIntervals& known) {
  std::string text;
  const auto add = [&](std::string_view what, const ErrorInterval& interval) {
    if (!interval.known()) return;
    const std::string rows = interval.family.empty()
                                 ? "all engines and GPUs"
                                 : interval.family + " on " + interval.architecture;
    text += fmt::format("{}{} as {} rows of {} sources ({})", text.empty() ? "" : "; ", what,
                        format_count(interval.rows), interval.sources, rows);
  };
  add("the step", known.step);
  add("allocated", known.allocated);
  add("nvidia-smi and reserved", known.nvidia_smi);
  return text;
}

}  // namespace shardwise
