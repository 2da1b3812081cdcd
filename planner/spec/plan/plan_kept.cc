#include <cstddef>
#include <optional>

#include "planner/spec/json/json_line.h"
#include "planner/spec/plan/kept_settings.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

/// What earlier versions wrote of a key: its value as words, without their types.
JsonValue value_of(const std::string& word) {
  JsonValue value;
  if (word == "true" || word == "false") {
    value.kind = JsonValue::Kind::boolean;
    value.boolean = word == "true";
  } else if (const std::optional<std::int64_t> integer = parse_integer(word)) {
    value.kind = JsonValue::Kind::integer;
    value.integer = *integer;
  } else if (const std::optional<double> number = parse_number(word)) {
    value.kind = JsonValue::Kind::number;
    value.number = *number;
  } else {
    value.kind = JsonValue::Kind::string;
    value.string = word;
  }
  return value;
}

JsonValue value_of(const std::vector<std::string>& words, bool list) {
  if (!list && words.size() == 1) return value_of(words.front());
  JsonValue value;
  value.kind = list || !words.empty() ? JsonValue::Kind::array : JsonValue::Kind::object;
  for (const std::string& word : words) value.elements.push_back(value_of(word));
  return value;
}

KeptSetting read_setting(ObjectReader reader, const JsonValue& object) {
  KeptSetting setting;
  setting.name = reader.string("name");
  const bool list = reader.boolean_or("list", false);
  const JsonValue* words = reader.array("words", false);
  if (words != nullptr) {
    for (const JsonValue& word : words->elements) {
      if (word.kind == JsonValue::Kind::string) {
        setting.words.push_back(word.string);
      } else {
        reader.fail("words", "holds something that is no text");
      }
    }
  }
  reader.has("value");
  const JsonValue* value = object.find("value");  // null is a value too
  if (value != nullptr) {
    setting.value = json_line(*value);
  } else if (words == nullptr) {
    reader.fail("words", "missing");
  } else if (!setting.name.starts_with('-') && !is_choice_name(setting.name)) {
    setting.value = json_line(value_of(setting.words, list));
    setting.words.clear();
  }
  reader.reject_unknown();
  return setting;
}

}  // namespace

void read_fields(ObjectReader& reader, KeptSettings& kept) {
  kept.framework = reader.string("framework");
  const JsonValue* list = reader.array("settings");
  if (list != nullptr) {
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      const JsonValue& each = list->elements[i];
      kept.settings.push_back(read_setting(reader.nested("settings", i, each), each));
    }
  }
  reader.reject_unknown();
  if (!reader.ok() || list == nullptr) return;
  for (const KeptProblem& problem : problems_of(kept.settings)) {
    reader.nested("settings", problem.at, list->elements[problem.at])
        .fail("name", problem.message, problem.hint);
  }
}

void write_fields(JsonWriter& json, const KeptSettings& kept) {
  json.member("framework", kept.framework);
  json.begin_array("settings");
  for (const KeptSetting& each : kept.settings) {
    json.begin_object();
    json.member("name", each.name);
    if (!each.value.empty()) {
      json.json_member("value", each.value);
    } else {
      json.begin_array("words");
      for (const std::string& word : each.words) json.element(std::string_view(word));
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace shardwise
