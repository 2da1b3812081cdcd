#include "planner/spec/signed_format.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/spec/format.h"

namespace shardwise {

std::string signed_seconds(Seconds time) {
  const std::string text = format_seconds(Seconds(std::abs(time.value())));
  return (time < Seconds(0) && text != format_seconds(Seconds(0)) ? "-" : "+") + text;
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

}  // namespace shardwise
