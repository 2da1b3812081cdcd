#include "simulator/traces/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/json_problem.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kDeepest = 64;
// 95 years: a time, a duration after it and the distance of any two fit 64 bits of nanoseconds.
constexpr std::int64_t kMostMicroseconds = 3'000'000'000'000'000;

/// Where in the trace a value stands.
enum class Place : std::uint8_t {
  root,
  events,       // the array
  event,        // an entry
  arguments,    // its "args"
  other,        // "otherData"
  distributed,  // "distributedInfo"
  devices,      // "deviceProperties"
  device,
  elsewhere,
};

/// Which field of an event the next value is.
enum class Field : std::uint8_t {
  none,
  phase,
  name,
  category,
  start,
  duration,
  process,
  thread,
  label,
  correlation,
  collective,
  waited,
};

Field field_of_event(std::string_view key) {
  if (key == "ph") return Field::phase;
  if (key == "name") return Field::name;
  if (key == "cat") return Field::category;
  if (key == "ts") return Field::start;
  if (key == "dur") return Field::duration;
  if (key == "pid") return Field::process;
  if (key == "tid") return Field::thread;
  return Field::none;
}

Field field_of_arguments(std::string_view key) {
  if (key == "correlation") return Field::correlation;
  if (key == "Collective name") return Field::collective;
  if (key == "name") return Field::label;
  if (key == "waited_us") return Field::waited;
  return Field::none;
}

/// Microseconds as nanoseconds, exact for what has at most three decimals: as a double, times since
/// 1970 would lose a quarter of a microsecond. \returns false when they are out of range
bool to_nanoseconds(std::string_view digits, double value, std::int64_t& result) {
  if (!(std::abs(value) < static_cast<double>(kMostMicroseconds))) return false;
  const std::size_t point = digits.find('.');
  const bool plain =
      point != std::string_view::npos && digits.find_first_of("eE") == std::string_view::npos;
  if (!plain) {
    result = std::llround(value * 1000);
    return true;
  }
  std::int64_t whole = 0;
  const auto read = std::from_chars(digits.begin(), digits.begin() + point, whole);
  if (read.ec != std::errc()) return false;
  std::int64_t thousandths = 0;
  for (std::size_t i = 1; i <= 4; ++i) {
    const char digit = point + i < digits.size() ? digits[point + i] : '0';
    if (i < 4) thousandths = thousandths * 10 + (digit - '0');
    if (i == 4 && digit >= '5') ++thousandths;
  }
  result = whole * 1000 + (digits.front() == '-' ? -thousandths : thousandths);
  return true;
}

class EventReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventReader(TextPieces& pieces, const std::string& file,
              const std::function<bool(const TraceEvent&)>& each)
      : pieces_(pieces), file_(file), each_(each) {}

  bool null() override { return skip(); }
  bool boolean(bool /*value*/) override { return skip(); }
  bool number_integer(std::int64_t value) override { return number(value, {}, 0); }
  bool number_unsigned(std::uint64_t value) override {
    const bool is_time = in_event() && (field_ == Field::start || field_ == Field::duration);
    if (is_time && value > static_cast<std::uint64_t>(kMostMicroseconds)) return bad_time();
    // Ids up to 2^64 - 1 exist; as signed numbers they stay distinct.
    return number(static_cast<std::int64_t>(value), {}, 0);
  }
  bool number_float(double value, const std::string& digits) override {
    return number(static_cast<std::int64_t>(std::clamp(value, -9e18, 9e18)), digits, value);
  }
  bool string(std::string& value) override;
  bool binary(binary_t& /*value*/) override { return false; }  // not in JSON text
  bool start_object(std::size_t /*elements*/) override;
  bool end_object() override;
  bool start_array(std::size_t /*elements*/) override;
  bool end_array() override { return close(); }
  bool key(std::string& value) override;

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    if (pieces_.value_too_long()) {
      return fail(fmt::format("a value of more than {} MiB", TextPieces::kMostBytesOfAValue >> 20),
                  "");
    }
    return fail(json_problem(error.what()),
                pieces_.done() ? "the text ends too early: was the trace written to its end?" : "");
  }

  Result<TraceHead> result() && {
    if (!problem_.message.empty()) return std::move(problem_);
    if (!saw_events_) {
      return Diagnostic{file_,
                        1,
                        1,
                        "",
                        "no trace: traceEvents is missing",
                        "give a Chrome trace: of simulate --trace, or of torch.profiler"};
    }
    return std::move(head_);
  }

 private:
  Place place() const { return places_.empty() ? Place::elsewhere : places_.back(); }
  bool in_event() const { return place() == Place::event || place() == Place::arguments; }
  bool skip() {
    if (in_event() && (field_ == Field::start || field_ == Field::duration)) return bad_time();
    return true;
  }
  bool number(std::int64_t integer, std::string_view digits, double value);
  bool time(std::int64_t integer, std::string_view digits, double value, std::int64_t& result);
  bool open(Place place);
  bool close() {
    places_.pop_back();
    return true;
  }
  bool bad_time() {
    return fail(fmt::format("{} of an event is no time", field_ == Field::start ? "ts" : "dur"),
                "microseconds, at most 95 years of them");
  }
  bool fail(std::string message, std::string hint) {
    problem_ = {file_,
                static_cast<int>(std::min<std::int64_t>(pieces_.line(), 2'000'000'000)),
                static_cast<int>(std::min<std::int64_t>(pieces_.column(), 2'000'000'000)),
                "",
                std::move(message),
                std::move(hint)};
    return false;
  }

  TextPieces& pieces_;
  const std::string& file_;
  const std::function<bool(const TraceEvent&)>& each_;
  std::vector<Place> places_;
  Field field_ = Field::none;
  std::string key_;  // outside of events
  TraceEvent event_;
  TraceHead head_;
  bool saw_events_ = false;
  Diagnostic problem_;
};

bool EventReader::key(std::string& value) {
  pieces_.value_ended();
  switch (place()) {
    case Place::event:
      field_ = field_of_event(value);
      if (field_ == Field::none) key_ = value;
      return true;
    case Place::arguments:
      field_ = field_of_arguments(value);
      return true;
    default:
      field_ = Field::none;
      key_ = std::move(value);
      if (place() == Place::root && key_ == "schemaVersion") head_.has_schema_version = true;
      return true;
  }
}

bool EventReader::open(Place place) {
  pieces_.value_ended();
  if (places_.size() == kDeepest) {
    return fail(fmt::format("nested deeper than {} levels", kDeepest), "");
  }
  if (in_event() && (field_ == Field::start || field_ == Field::duration)) return bad_time();
  places_.push_back(place);
  field_ = Field::none;
  return true;
}

bool EventReader::start_object(std::size_t /*elements*/) {
  if (places_.empty()) return open(Place::root);
  switch (place()) {
    case Place::events:
      event_.clear();
      event_.line = pieces_.line();
      return open(Place::event);
    case Place::event:
      return open(field_ == Field::none && key_ == "args" ? Place::arguments : Place::elsewhere);
    case Place::root:
      return open(key_ == "otherData"         ? Place::other
                  : key_ == "distributedInfo" ? Place::distributed
                                              : Place::elsewhere);
    case Place::devices:
      return open(head_.device.empty() ? Place::device : Place::elsewhere);
    default:
      return open(Place::elsewhere);
  }
}

bool EventReader::end_object() {
  const bool ends_event = place() == Place::event;
  close();
  if (!ends_event) return true;
  ++head_.events;
  return each_(event_);
}

bool EventReader::start_array(std::size_t /*elements*/) {
  if (places_.empty() || (place() == Place::root && key_ == "traceEvents")) {
    saw_events_ = true;
    return open(Place::events);
  }
  return open(place() == Place::root && key_ == "deviceProperties" ? Place::devices
                                                                   : Place::elsewhere);
}

bool EventReader::string(std::string& value) {
  pieces_.value_ended();
  switch (place()) {
    case Place::event:
    case Place::arguments:
      break;
    case Place::other:
      if (key_ == "schema")
        head_.schema = std::move(value);
      else if (key_ == "origin")
        head_.origin = std::move(value);
      else if (key_ == "plan_digest")
        head_.plan_digest = std::move(value);
      else if (key_ == "granularity")
        head_.granularity = std::move(value);
      return true;
    case Place::distributed:
      if (key_ == "backend") head_.backend = std::move(value);
      return true;
    case Place::device:
      if (key_ == "name") head_.device = std::move(value);
      return true;
    default:
      return true;
  }
  switch (field_) {
    case Field::phase:
      event_.phase = value.size() == 1 ? value.front() : '?';
      return true;
    case Field::name:
      event_.name.swap(value);
      return true;
    case Field::category:
      event_.category.swap(value);
      return true;
    case Field::label:
      event_.label.swap(value);
      return true;
    case Field::collective:
      event_.collective.swap(value);
      return true;
    case Field::start:
    case Field::duration:
      return bad_time();
    default:
      return true;
  }
}

bool EventReader::time(std::int64_t integer, std::string_view digits, double value,
                       std::int64_t& result) {
  if (digits.empty()) {
    if (std::abs(static_cast<double>(integer)) >= static_cast<double>(kMostMicroseconds)) {
      return bad_time();
    }
    result = integer * 1000;
    return true;
  }
  return to_nanoseconds(digits, value, result) || bad_time();
}

bool EventReader::number(std::int64_t integer, std::string_view digits, double value) {
  if (place() == Place::distributed) {
    if (key_ == "rank") head_.rank = integer;
    if (key_ == "world_size") head_.world_size = integer;
    return true;
  }
  if (!in_event()) return true;
  switch (field_) {
    case Field::start:
      event_.timed = true;
      return time(integer, digits, value, event_.start_ns);
    case Field::duration:
      if (!time(integer, digits, value, event_.duration_ns)) return false;
      return event_.duration_ns >= 0 || bad_time();
    case Field::waited:
      return time(integer, digits, value, event_.waited_ns);
    case Field::process:
      event_.process = integer;
      return true;
    case Field::thread:
      event_.thread = integer;
      return true;
    case Field::correlation:
      event_.correlation = integer;
      return true;
    default:
      return true;
  }
}

}  // namespace

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

Result<TraceHead> read_trace_events(const ByteSource& source, const std::string& file,
                                    const std::function<bool(const TraceEvent&)>& each) {
  TextPieces pieces(source);
  if (pieces.done()) return Diagnostic{file, 1, 1, "", "the file is empty", ""};
  EventReader reader(pieces, file, each);
  nlohmann::json::sax_parse(TextCursor(&pieces), TextCursor(nullptr), &reader);
  return std::move(reader).result();
}

}  // namespace shardwise::sim
