#include "simulator/traces/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwise::sim {
namespace {

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

class EventReader {
 public:
  EventReader(const ByteSource& source, const std::string& file,
              const std::function<bool(const TraceEvent&)>& each)
      : stream_(source), file_(file), each_(each) {}

  Result<TraceHead> read() {
    if (stream_.empty()) return Diagnostic{file_, 1, 1, "", "the file is empty", ""};
    while (take(stream_.next())) {
    }
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
  bool awaits_time() const {
    return in_event() && (field_ == EventField::start || field_ == EventField::duration);
  }

  bool take(JsonToken token);
  bool key(std::string_view key);
  bool string(std::string_view value);
  bool number(std::string_view digits);
  bool open(Place place);
  bool close();
  Place place_of_object() const;
  Place place_of_array();
  bool bad_time() {
    const char* const key = field_ == EventField::start      ? "ts"
                            : field_ == EventField::duration ? "dur"
                                                             : "waited_us";
    return fail(fmt::format("{} of an event is no time", key),
                "microseconds, at most 95 years of them");
  }
  bool fail(std::string message, std::string hint) {
    problem_ = {file_,
                static_cast<int>(std::min<std::int64_t>(stream_.line(), 2'000'000'000)),
                static_cast<int>(std::min<std::int64_t>(stream_.column(), 2'000'000'000)),
                "",
                std::move(message),
                std::move(hint)};
    return false;
  }

  JsonStream stream_;
  const std::string& file_;
  const std::function<bool(const TraceEvent&)>& each_;
  std::vector<Place> places_;
  EventField field_ = EventField::none;
  std::string key_;  // that is no field of an event
  TraceEvent event_;
  TraceHead head_;
  bool saw_events_ = false;
  Diagnostic problem_;
};

/// \returns false when there is nothing more to read
bool EventReader::take(JsonToken token) {
  switch (token) {
    case JsonToken::key:
      return key(stream_.text());
    case JsonToken::string:
      return string(stream_.text());
    case JsonToken::number:
      return number(stream_.text());
    case JsonToken::truth:
    case JsonToken::null:
      return !awaits_time() || bad_time();
    case JsonToken::begin_object:
      return open(place_of_object());
    case JsonToken::begin_array:
      return open(place_of_array());
    case JsonToken::end_object:
    case JsonToken::end_array:
      return close();
    case JsonToken::end:
      return false;
    case JsonToken::wrong:
      return fail(stream_.problem(),
                  stream_.ended_early()
                      ? "the text ends too early: was the trace written to its end?"
                      : "");
  }
  return false;
}

bool EventReader::key(std::string_view key) {
  field_ = place() == Place::event       ? field_of_event(key)
           : place() == Place::arguments ? field_of_arguments(key)
                                         : EventField::none;
  if (field_ != EventField::none || place() == Place::arguments) return true;
  key_.assign(key);
  if (place() == Place::root && key_ == "schemaVersion") head_.has_schema_version = true;
  return true;
}

Place EventReader::place_of_object() const {
  if (places_.empty()) return Place::root;
  switch (place()) {
    case Place::events:
      return Place::event;
    case Place::event:
      return field_ == EventField::none && key_ == "args" ? Place::arguments : Place::elsewhere;
    case Place::root:
      return key_ == "otherData"         ? Place::other
             : key_ == "distributedInfo" ? Place::distributed
                                         : Place::elsewhere;
    case Place::devices:
      return head_.device.empty() ? Place::device : Place::elsewhere;
    default:
      return Place::elsewhere;
  }
}

Place EventReader::place_of_array() {
  if (places_.empty() || (place() == Place::root && key_ == "traceEvents")) {
    saw_events_ = true;
    return Place::events;
  }
  const bool devices = place() == Place::root && key_ == "deviceProperties";
  return devices ? Place::devices : Place::elsewhere;
}

bool EventReader::open(Place place) {
  if (awaits_time()) return bad_time();
  if (place == Place::event) {
    event_.clear();
    event_.line = stream_.line();
  }
  places_.push_back(place);
  field_ = EventField::none;
  return true;
}

bool EventReader::close() {
  const bool ends_event = place() == Place::event;
  places_.pop_back();
  if (!ends_event) return true;
  ++head_.events;
  return each_(event_);
}

bool EventReader::string(std::string_view value) {
  switch (place()) {
    case Place::event:
    case Place::arguments:
      break;
    case Place::other:
      if (key_ == "schema")
        head_.schema = value;
      else if (key_ == "origin")
        head_.origin = value;
      else if (key_ == "plan_digest")
        head_.plan_digest = value;
      else if (key_ == "granularity")
        head_.granularity = value;
      return true;
    case Place::distributed:
      if (key_ == "backend") head_.backend = value;
      return true;
    case Place::device:
      if (key_ == "name") head_.device = value;
      return true;
    default:
      return true;
  }
  return set_text(event_, field_, value) || bad_time();
}

bool EventReader::number(std::string_view digits) {
  if (place() == Place::distributed) {
    if (key_ == "rank") head_.rank = to_identity(digits);
    if (key_ == "world_size") head_.world_size = to_identity(digits);
    return true;
  }
  if (!in_event()) return true;
  return set_number(event_, field_, digits) || bad_time();
}

}  // namespace

Result<TraceHead> read_trace_events(const ByteSource& source, const std::string& file,
                                    const std::function<bool(const TraceEvent&)>& each) {
  EventReader reader(source, file, each);
  return reader.read();
}

}  // namespace shardwise::sim
