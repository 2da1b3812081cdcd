#include "simulator/traces/trace_event.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace shardwise::sim {
namespace {

constexpr std::int64_t kMostMicroseconds = 3'000'000'000'000'000;

/// Microseconds, as a JSON number has them, as nanoseconds: exact for what has at most three
/// decimals. \returns false when they are beyond 95 years
bool to_nanoseconds(std::string_view digits, std::int64_t& result) {
  const char* const end = digits.end();
  std::int64_t whole = 0;
  const auto [at, bad] = std::from_chars(digits.begin(), end, whole);
  if (bad != std::errc()) return false;
  if (at == end || *at == '.') {
    if (whole <= -kMostMicroseconds || whole >= kMostMicroseconds) return false;
    std::int64_t thousandths = 0;
    const char* decimal = at == end ? end : at + 1;
    for (int i = 0; i < 3; ++i) {
      const bool there = decimal < end && *decimal >= '0' && *decimal <= '9';
      thousandths = thousandths * 10 + (there ? *decimal - '0' : 0);
      if (there) ++decimal;
    }
    if (decimal < end && *decimal >= '5' && *decimal <= '9') ++thousandths;
    decimal = std::find_if(decimal, end, [](char c) { return c == 'e' || c == 'E'; });
    if (decimal == end) {
      result = whole * 1000 + (digits.front() == '-' ? -thousandths : thousandths);
      return true;
    }
  }
  double value = 0;
  if (std::from_chars(digits.begin(), end, value).ec != std::errc()) return false;
  if (!(std::abs(value) < static_cast<double>(kMostMicroseconds))) return false;
  result = std::llround(value * 1000);
  return true;
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

std::int64_t to_identity(std::string_view digits) {
  const char* const end = digits.end();
  std::int64_t number = 0;
  if (const auto [at, bad] = std::from_chars(digits.begin(), end, number);
      bad == std::errc() && at == end) {
    return number;
  }
  std::uint64_t large = 0;
  if (const auto [at, bad] = std::from_chars(digits.begin(), end, large);
      bad == std::errc() && at == end) {
    return static_cast<std::int64_t>(large);
  }
  double value = 0;
  std::from_chars(digits.begin(), end, value);  // one that is too large leaves 0
  return static_cast<std::int64_t>(std::clamp(value, -9e18, 9e18));
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
    default:
      return true;
  }
}

bool set_number(TraceEvent& event, EventField field, std::string_view digits) {
  switch (field) {
    case EventField::start:
      event.timed = true;
      return to_nanoseconds(digits, event.start_ns);
    case EventField::duration:
      return to_nanoseconds(digits, event.duration_ns) && event.duration_ns >= 0;
    case EventField::waited:
      return to_nanoseconds(digits, event.waited_ns);
    case EventField::process:
      event.process = to_identity(digits);
      return true;
    case EventField::thread:
      event.thread = to_identity(digits);
      return true;
    case EventField::correlation:
      event.correlation = to_identity(digits);
      return true;
    default:
      return true;
  }
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
