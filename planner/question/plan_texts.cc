#include "planner/question/plan_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/question/flags.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"

namespace shardwise {

std::string text_of(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::integer:
      return fmt::format("{}", value.integer);
    case JsonValue::Kind::number:
      return fmt::format("{}", value.number);
    case JsonValue::Kind::array: {
      std::vector<std::string> parts;
      for (const JsonValue& each : value.elements) parts.push_back(text_of(each));
      return fmt::format("{}", fmt::join(parts, ","));
    }
    default:
      return value.string;
  }
}

Texts texts_of(const JobSpec& job) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, job);
  json.end_object();
  Texts texts;
  const Result<JsonValue> read = parse_json(json.text(), "job");
  for (const JsonMember& each : read->members) texts[each.key] = text_of(each.value);
  return texts;
}

Texts texts_of(const Layout& layout) {
  Texts texts;
  for (const std::string& key : layout_keys()) texts[key] = field_text(layout, key);
  return texts;
}

JobSpec job_of(const Texts& texts, Diagnostics& problems) {
  JsonValue object;
  object.kind = JsonValue::Kind::object;
  for (const auto& [field, text] : texts) {
    if (text.empty()) continue;
    JsonValue value;
    value.kind = JsonValue::Kind::string;
    value.string = text;
    if (field == "recompute_operations") {
      value.kind = JsonValue::Kind::array;
      for (const std::string& part : split_at(text, ',')) {
        JsonValue name;
        name.kind = JsonValue::Kind::string;
        name.string = part;
        value.elements.push_back(name);
      }
    } else if (text == "true" || text == "false") {
      value.kind = JsonValue::Kind::boolean;
      value.boolean = text == "true";
    } else {
      if (const std::optional<std::int64_t> integer = parse_integer(text)) {
        value.kind = JsonValue::Kind::integer;
        value.integer = *integer;
        value.number = static_cast<double>(*integer);
      } else if (const std::optional<double> number = parse_number(text)) {
        value.kind = JsonValue::Kind::number;
        value.number = *number;
      }
    }
    object.members.push_back({field, value});
  }
  Diagnostics found;
  ObjectReader reader(object, "command line", "", found);
  JobSpec job;
  read_fields(reader, job);
  for (Diagnostic& each : found) {
    each.line = 0;
    if (!each.path.empty() && each.path.front() == '/') each.path = flag_of(each.path.substr(1));
  }
  problems.insert(problems.end(), found.begin(), found.end());
  return job;
}

}  // namespace shardwise
