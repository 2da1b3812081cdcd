#include "planner/spec/report/verdict_words.h"

#include <fmt/format.h>

#include "planner/spec/text/format.h"

namespace shardwise {

Tone tone_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return Tone::good;
    case Fit::at_risk:
      return Tone::warning;
    case Fit::does_not_fit:
      break;
  }
  return Tone::bad;
}

std::string verdict_words(const StepReport& report) {
  const Verdict& v = report.verdict;
  const std::string point = format_bytes(v.point);
  const std::string of = format_bytes(v.usable);
  const std::string needed = format_bytes(v.needed);
  const std::string step = format_seconds(report.step_time) + " a step";
  switch (v.fit) {
    case Fit::fits:
      return fmt::format("Fits: {} of {} on the fullest GPU, at most {}; {}", point, of,
                         format_bytes(v.upper), step);
    case Fit::at_risk:
      if (v.point > v.usable) {
        return fmt::format("At risk: {} of {} on the fullest GPU, {} with what is cached; {}",
                           needed, of, point, step);
      }
      return fmt::format("At risk: {} of {} on the fullest GPU, but up to {}; {}", point, of,
                         format_bytes(v.upper), step);
    case Fit::does_not_fit:
      break;
  }
  if (v.needed <= v.usable) {
    return fmt::format("Does not fit: {} of {} in the memory of a host, {} too much",
                       format_bytes(v.host), format_bytes(v.host_usable),
                       format_bytes(v.host_lacks));
  }
  return fmt::format("Does not fit: {} of {} on the fullest GPU, {} too much", needed, of,
                     format_bytes(v.needed - v.usable));
}

}  // namespace shardwise
