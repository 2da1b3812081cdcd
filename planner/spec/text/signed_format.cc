#include "planner/spec/text/signed_format.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "planner/spec/text/format.h"

namespace shardwise {

namespace {

/// What is written as nothing is not below it.
std::string with_sign(bool below, std::string text, const std::string& nothing) {
  return (below && text != nothing ? "-" : "+") + std::move(text);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

std::string signed_seconds(Seconds time) {
  return with_sign(time < Seconds(0), format_seconds(Seconds(std::abs(time.value()))),
                   format_seconds(Seconds(0)));
}

std::string signed_percent(double share) {
  return with_sign(share < 0, percent_text(std::abs(share)), percent_text(0));
}

std::string signed_bytes(Bytes bytes) {
  return with_sign(bytes < Bytes(0), format_bytes(Bytes(std::abs(bytes.value()))),
                   format_bytes(Bytes(0)));
}

std::string signed_dollars(double dollars) {
  return with_sign(dollars < 0, format_dollars(std::abs(dollars)), format_dollars(0));
}

}  // namespace shardwise
