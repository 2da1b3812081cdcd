// A trace is either refused or gives steps whose parts add up, whatever the pieces it comes in.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "planner/spec/text/check.h"
#include "simulator/traces/traced_run.h"
#include "tests/fuzz/fuzz_input.h"

namespace shardwise {
namespace {

sim::ByteSource pieces_of(std::string_view text, std::size_t piece) {
  return [text, piece](char* into, std::size_t room) mutable {
    const std::size_t count = std::min({room, piece, text.size()});
    std::memcpy(into, text.data(), count);
    text.remove_prefix(count);
    return count;
  };
}

void check_profile(const sim::StepProfile& step) {
  const Seconds sum = step.computing + step.exposed + step.idle;
  const double scale = std::max(1e-9, step.length.value());
  SHARDWISE_CHECK(std::abs((sum - step.length).value()) <= 1e-6 * scale, "parts do not add up");
  SHARDWISE_CHECK(step.idle.value() >= -1e-6 * scale, "idle for less than no time");
  SHARDWISE_CHECK(step.exposed <= step.communicating, "more exposed than communicated");
}

}  // namespace
}  // namespace shardwise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto run = read_input(
      text, [](std::string_view t) { return sim::read_trace(pieces_of(t, 1 << 20), "fuzz.json"); });
  const Result<sim::TracedRun> again = sim::read_trace(pieces_of(text, 13), "fuzz.json");
  SHARDWISE_CHECK(run.has_value() == again.ok(), "pieces make a difference");
  if (!run) return 0;
  SHARDWISE_CHECK(run->head.events == again->head.events, "pieces make a difference");
  if (run->ours()) {
    SHARDWISE_CHECK(run->median_operations().length >= Seconds(0), "a step of less than no time");
    return 0;
  }
  SHARDWISE_CHECK(!run->profiled.steps.empty(), "no steps");
  for (const sim::ProfiledStep& step : run->profiled.steps) check_profile(step.profile);
  return 0;
}
