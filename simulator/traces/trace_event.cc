#include "simulator/traces/trace_event.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace shardwise::sim {
namespace {

constexpr std::int64_t kMostMicroseconds = 3'000'000'000'000'000;

/// Whole microseconds as nanoseconds. \returns false when they are beyond 95 years
bool to_nanoseconds(std::int64_t microseconds, std::int64_t& result) {
  if (microseconds <= -kMostMicroseconds || microseconds >= kMostMicroseconds) return false;
  result = microseconds * 1000;
  return true;
}

/// The same of a JSON number's digits: exact for what has at most three decimals.
bool to_nanoseconds(std::string_view digits, std::int64_t& result) {
  const char* const end = digits.end();
  if (std::find_if(digits.begin(), end, [](char c) { return c == 'e' || c == 'E'; }) != end) {
    double value = 0;
    if (std::from_chars(digits.begin(), end, value).ec != std::errc()) return false;
    if (!(std::abs(value) < static_cast<double>(kMostMicroseconds))) return false;
    result = std::llround(value * 1000);
    return true;
  }
  std::int64_t whole = 0;
  const auto [point, bad] = std::from_chars(digits.begin(), end, whole);
  if (bad != std::errc() || !to_nanoseconds(whole, result)) return false;
  const char* decimal = point == end ? end : point + 1;
  std::int64_t thousandths = 0;
  for (int i = 0; i < 3; ++i) {
    thousandths = thousandths * 10 + (decimal < end ? *decimal - '0' : 0);
    if (decimal < end) ++decimal;
  }
  if (decimal < end && *decimal >= '5') ++thousandths;
  result += digits.front() == '-' ? -thousandths : thousandths;
  return true;
}

bool is_time(EventField field) {
  return field == EventField::start || field == EventField::duration || field == EventField::waited;
}

bool set_time(TraceEvent& event, EventField field, std::int64_t nanoseconds) {
  if (field == EventField::start) {
    event.timed = true;
    event.start_ns = nanoseconds;
  } else if (field == EventField::duration) {
    event.duration_ns = nanoseconds;
    return nanoseconds >= 0;
  } else {
    event.waited_ns = nanoseconds;
  }
  return true;
}

bool set_identity(TraceEvent& event, EventField field, std::int64_t number) {
  if (field == EventField::process) event.process = number;
  if (field == EventField::thread) event.thread = number;
  if (field == EventField::correlation) event.correlation = number;
  return true;
}

/// "stream 7" and "13721" as profilers until 2021 wrote a stream and a thread; -1 for other words.
std::int64_t number_in(std::string_view text) {
  constexpr std::string_view kStream = "stream ";
  if (text.starts_with(kStream)) text.remove_prefix(kStream.size());
  std::int64_t number = -1;
  const auto [end, bad] = std::from_chars(text.begin(), text.end(), number);
  return bad == std::errc() && end == text.end() ? number : -1;
}

}  // namespace

EventField field_of_event(std::string_view key) {
  if (key == "ph") return EventField::phase;
  if (key == "name") return EventField::name;
  if (key == "cat") return EventField::category;
  if (key == "ts") return EventField::start;
  if (key == "dur") return EventField::duration;
  if (key == "pid") return EventField::process;
  if (key == "tid") return EventField::thread;
  return EventField::none;
}

EventField field_of_arguments(std::string_view key) {
  if (key == "correlation") return EventField::correlation;
  if (key == "Collective name") return EventField::collective;
  if (key == "name") return EventField::label;
  if (key == "waited_us") return EventField::waited;
  return EventField::none;
}

bool set_text(TraceEvent& event, EventField field, std::string_view text) {
  switch (field) {
    case EventField::phase:
      event.phase = text.size() == 1 ? text.front() : '?';
      return true;
    case EventField::name:
      event.name = text;
      return true;
    case EventField::category:
      event.category = text;
      return true;
    case EventField::label:
      event.label = text;
      return true;
    case EventField::collective:
      event.collective = text;
      return true;
    case EventField::start:
    case EventField::duration:
      return false;
    case EventField::process:
    case EventField::thread:
      return set_identity(event, field, number_in(text));
    default:
      return true;
  }
}

bool set_integer(TraceEvent& event, EventField field, std::int64_t value) {
  if (!is_time(field)) return set_identity(event, field, value);
  std::int64_t nanoseconds = 0;
  return to_nanoseconds(value, nanoseconds) && set_time(event, field, nanoseconds);
}

bool set_large(TraceEvent& event, EventField field, std::uint64_t value) {
  return !is_time(field) && set_identity(event, field, static_cast<std::int64_t>(value));
}

bool set_decimal(TraceEvent& event, EventField field, std::string_view digits) {
  if (is_time(field)) {
    std::int64_t nanoseconds = 0;
    return to_nanoseconds(digits, nanoseconds) && set_time(event, field, nanoseconds);
  }
  double value = 0;
  std::from_chars(digits.begin(), digits.end(), value);  // one that is too large leaves 0
  return set_identity(event, field, static_cast<std::int64_t>(std::clamp(value, -9e18, 9e18)));
}

void TraceEvent::clear() {
  line = 0;
  phase = 0;
  name.clear();
  category.clear();
  timed = false;
  start_ns = 0;
  duration_ns = -1;
  process = -1;
  thread = -1;
  label.clear();
  correlation = -1;
  collective.clear();
  waited_ns = 0;
}

}  // namespace shardwise::sim
