#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardwise::sim {

inline constexpr double kNanosecond = 1e-9;  // in seconds

/// One entry of a Chrome trace's "traceEvents", with the fields that we read. What an entry lacks
/// is empty or -1.
struct TraceEvent {
  std::int64_t line = 0;  // where it begins
  char phase = 0;         // "ph": 'X' a span, 'M' a name, 's' and 'f' an arrow …
  std::string name;
  std::string category;
  bool timed = false;         // "ts" was there
  std::int64_t start_ns = 0;  // "ts", in the file microseconds
  std::int64_t duration_ns = -1;
  std::int64_t process = -1;  // "pid" and "tid" where they have numbers
  std::int64_t thread = -1;
  // Of "args":
  std::string label;              // "name" of a process or thread
  std::int64_t correlation = -1;  // of a launch and what it launched
  std::string collective;         // "Collective name"
  std::int64_t waited_ns = 0;     // "waited_us": before the other end of a message was there

  void clear();
};

/// Fields of an entry of "traceEvents" that we read.
enum class EventField : std::uint8_t {
  none,
  phase,     // "ph"
  name,      // "name"
  category,  // "cat"
  start,     // "ts"
  duration,  // "dur"
  process,   // "pid"
  thread,    // "tid"
  // Of its "args":
  label,        // "name"
  correlation,  // "correlation"
  collective,   // "Collective name"
  waited,       // "waited_us"
};

EventField field_of_event(std::string_view key);
EventField field_of_arguments(std::string_view key);

/// A JSON string or number into the field it is of; one that the field does not take is passed
/// over. A number with a point or an exponent comes as its digits: times are kept to the
/// nanosecond, and as doubles those since 1970 would lose a quarter of a microsecond. Ids up to
/// 2^64 - 1 exist; as signed numbers they stay distinct. \returns false for a time that is none:
/// text, beyond 95 years, a duration below 0. So a time, a duration after it and the distance of
/// any two fit 64 bits
bool set_text(TraceEvent& event, EventField field, std::string_view text);
bool set_integer(TraceEvent& event, EventField field, std::int64_t value);
bool set_large(TraceEvent& event, EventField field, std::uint64_t value);
bool set_decimal(TraceEvent& event, EventField field, std::string_view digits);

}  // namespace shardwise::sim
