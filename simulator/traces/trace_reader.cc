#include "simulator/traces/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/json/json_problem.h"
#include "planner/spec/text/utf8.h"
#include "simulator/traces/operation_record.h"

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

constexpr std::size_t kDeepest = 64;
constexpr int kNumberOverflow = 406;  // nlohmann's number of this error

/// Takes nlohmann's events of a trace's text; each returns false to stop reading.
class EventReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventReader(PiecewiseText& text, const std::string& file,
              const std::function<bool(const TraceEvent&)>& each)
      : text_(text), file_(file), each_(each) {}

  bool null() override { return !awaits_time() || bad_time(); }
  bool boolean(bool /*value*/) override { return null(); }
  bool number_integer(std::int64_t value) override;
  bool number_unsigned(std::uint64_t value) override;
  bool number_float(double value, const std::string& digits) override;
  bool string(std::string& value) override;
  bool binary(binary_t& /*value*/) override { return false; }  // not in JSON text
  bool key(std::string& key) override;
  bool start_object(std::size_t /*elements*/) override { return open(place_of_object()); }
  bool start_array(std::size_t /*elements*/) override { return open(place_of_array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

  Result<TraceHead> result() &&;

 private:
  Place place() const { return places_.empty() ? Place::elsewhere : places_.back(); }
  bool in_event() const { return place() == Place::event || place() == Place::arguments; }
  bool awaits_time() const {
    return in_event() && (field_ == EventField::start || field_ == EventField::duration);
  }

  bool open(Place place);
  bool close();
  Place place_of_object() const;
  Place place_of_array();
  bool bad_time() {
    const char* const key = field_ == EventField::start      ? "ts"
                            : field_ == EventField::duration ? "dur"
                                                             : "waited_us";
    return fail(fmt::format("{} of an event is not a time", key),
                "microseconds, at most 95 years of them", text_.read());
  }
  bool given_twice(const std::string& key) {
    return fail(fmt::format("{} is given twice in one object", shown(key)), "", text_.read());
  }
  /// Notes a layer or a number of bytes that is none. Other programs may mean anything by them.
  void check_quantity(double value) {
    constexpr double kMost = 9e15;
    if (quantity_.empty() || (value >= 0 && value <= kMost)) return;
    wrong_ = fmt::format("args.{} is {}", quantity_, value);
  }
  /// At the byte before so many.
  bool fail(std::string message, std::string hint, std::int64_t bytes) {
    const PiecewiseText::Place at = text_.place_before(bytes);
    problem_ = {file_,
                static_cast<int>(std::min<std::int64_t>(at.line, 2'000'000'000)),
                static_cast<int>(std::min<std::int64_t>(at.column, 2'000'000'000)),
                "",
                std::move(message),
                std::move(hint)};
    return false;
  }

  PiecewiseText& text_;
  const std::string& file_;
  const std::function<bool(const TraceEvent&)>& each_;
  std::vector<Place> places_;
  EventField field_ = EventField::none;
  std::string key_;  // that is no field of an event
  TraceEvent event_;
  TraceHead head_;
  std::uint32_t seen_ = 0;     // fields of the event, a bit each
  std::string_view quantity_;  // "layer" or "bytes", whose number follows in "args"
  std::string wrong_;          // of these in the event; empty: nothing
  bool saw_events_ = false;
  std::optional<PiecewiseText::Place> named_at_;  // of the key traceEvents
  Diagnostic problem_;
};

Result<TraceHead> EventReader::result() && {
  if (!problem_.message.empty()) return std::move(problem_);
  if (saw_events_) return std::move(head_);
  if (named_at_) {
    fail("traceEvents is no list", "its events stand in [ ]", 0);
    problem_.line = static_cast<int>(std::min<std::int64_t>(named_at_->line, 2'000'000'000));
    problem_.column = 0;
    return std::move(problem_);
  }
  return Diagnostic{file_,
                    1,
                    1,
                    "",
                    "not a trace: traceEvents is missing",
                    "give a Chrome trace: of simulate --trace, or of torch.profiler"};
}

bool EventReader::parse_error(std::size_t position, const std::string& token,
                              const nlohmann::detail::exception& error) {
  if (text_.kept_too_much()) {
    return fail(
        fmt::format("{} MiB in which no text and no number ends", PiecewiseText::kMostKept >> 20),
        "", text_.read());
  }
  // The parser counts the end of the text as one byte more.
  const bool ended = static_cast<std::int64_t>(position) > text_.read();
  const std::int64_t at = std::min(static_cast<std::int64_t>(position), text_.read());
  if (error.id == kNumberOverflow) {
    return fail(fmt::format("{} is too large, the largest number is 1.8e308", shown(token)), "",
                at);
  }
  return fail(json_problem(error.what()),
              ended ? "the text ends too early: was the trace written to its end?" : "", at);
}

bool EventReader::key(std::string& key) {
  text_.let_go();
  quantity_ = place() != Place::arguments ? ""
              : key == "layer"            ? "layer"
              : key == "bytes"            ? "bytes"
                                          : "";
  field_ = place() == Place::event       ? field_of_event(key)
           : place() == Place::arguments ? field_of_arguments(key)
                                         : EventField::none;
  if (place() == Place::event && field_ != EventField::none) {
    const std::uint32_t bit = 1U << static_cast<unsigned>(field_);
    if ((seen_ & bit) != 0) return given_twice(key);
    seen_ |= bit;
  }
  if (field_ != EventField::none || place() == Place::arguments) return true;
  if (place() == Place::root && key == "traceEvents" && saw_events_) return given_twice(key);
  key_ = std::move(key);
  if (place() == Place::root && key_ == "traceEvents") named_at_ = text_.place_before(text_.read());
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
  if (places_.size() == kDeepest) {
    return fail(fmt::format("nested deeper than {} levels", kDeepest), "", text_.read());
  }
  if (place == Place::event) {
    seen_ = 0;
    event_.clear();
    wrong_.clear();
    event_.line = text_.place_before(text_.read()).line;
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
  if (!wrong_.empty() && OperationRecord::is_operation(event_)) {
    fail(fmt::format("operation {}: {}", shown(event_.name), wrong_), "", text_.read());
    problem_.line = static_cast<int>(std::min<std::int64_t>(event_.line, 2'000'000'000));
    problem_.column = 0;
    return false;
  }
  return each_(event_);
}

bool EventReader::string(std::string& value) {
  text_.let_go();
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

bool EventReader::number_integer(std::int64_t value) {
  text_.let_go();
  if (place() == Place::distributed) {
    if (key_ == "rank") head_.rank = value;
    if (key_ == "world_size") head_.world_size = value;
    return true;
  }
  check_quantity(static_cast<double>(value));
  return !in_event() || set_integer(event_, field_, value) || bad_time();
}

bool EventReader::number_unsigned(std::uint64_t value) {
  if (std::in_range<std::int64_t>(value)) return number_integer(static_cast<std::int64_t>(value));
  text_.let_go();
  check_quantity(static_cast<double>(value));
  return !in_event() || set_large(event_, field_, value) || bad_time();
}

bool EventReader::number_float(double value, const std::string& digits) {
  text_.let_go();
  check_quantity(value);
  return !in_event() || set_decimal(event_, field_, digits) || bad_time();
}

}  // namespace

Result<TraceHead> read_trace_events(const ByteSource& source, const std::string& file,
                                    const std::function<bool(const TraceEvent&)>& each) {
  PiecewiseText text(source);
  if (text.sgetc() == PiecewiseText::traits_type::eof()) {
    return Diagnostic{file, 1, 1, "", "the file is empty", ""};
  }
  const auto first = static_cast<unsigned char>(text.sgetc());
  constexpr unsigned char kMark = 0xEF;  // of UTF-8 in front
  const bool plain = first == '\t' || first == '\n' || first == '\r' || first == kMark;
  if ((first < ' ' && !plain) || (first > 0x7E && first != kMark)) {
    return Diagnostic{file,
                      1,
                      1,
                      "",
                      fmt::format("no text: it begins with the byte 0x{:02x}", first),
                      "give a Chrome trace, as JSON or packed by gzip"};
  }
  EventReader reader(text, file, each);
  std::istream stream(&text);
  nlohmann::json::sax_parse(stream, &reader);
  return std::move(reader).result();
}

}  // namespace shardwise::sim
