#include "planner/export/framework/framework_fields.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "planner/question/plan_texts.h"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"on",     "boolean", "integer",
                                                    "number", "text",    "texts"};
constexpr std::array<std::string_view, 3> kPlaces = {"configuration", "environment", "script"};
constexpr std::array<std::string_view, 2> kBuckets = {"gradients", "weights"};

/// A value, a list of them, or one of {"not": …}, {"has": …}, {"beyond": …}, {"above": 1},
/// {"below": 1}, {"stated": true}.
/// \returns nothing where it is another thing
std::optional<Clause> clause_of(const std::string& name, const JsonValue& value) {
  Clause clause;
  clause.name = name;
  const auto take = [&](const JsonValue& from) {
    if (from.kind != JsonValue::Kind::array) {
      clause.texts = {text_of(from)};
    } else {
      for (const JsonValue& each : from.elements) clause.texts.push_back(text_of(each));
    }
    return clause;
  };
  if (value.kind != JsonValue::Kind::object) return take(value);
  if (value.members.size() != 1) return std::nullopt;
  const std::string& word = value.members.front().key;
  const JsonValue& operand = value.members.front().value;
  if (word == "not" || word == "has" || word == "beyond") {
    clause.kind = word == "not"   ? Clause::Kind::is_not
                  : word == "has" ? Clause::Kind::has
                                  : Clause::Kind::beyond;
    return take(operand);
  }
  if (word == "stated" && operand.kind == JsonValue::Kind::boolean) {
    clause.kind = operand.boolean ? Clause::Kind::stated : Clause::Kind::not_stated;
    return clause;
  }
  const bool is_number =
      operand.kind == JsonValue::Kind::number || operand.kind == JsonValue::Kind::integer;
  if ((word != "above" && word != "below") || !is_number) {
    return std::nullopt;
  }
  clause.kind = word == "above" ? Clause::Kind::above : Clause::Kind::below;
  clause.number = operand.number;
  return clause;
}

}  // namespace

std::vector<std::string> texts_under(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> texts;
  const JsonValue* list = reader.array(key, false);
  if (list == nullptr) return texts;
  for (const JsonValue& each : list->elements) texts.push_back(text_of(each));
  return texts;
}

Conditions conditions_under(ObjectReader& reader, std::string_view key) {
  Conditions conditions;
  const JsonValue* object = reader.object(key, false);
  if (object == nullptr) return conditions;
  for (const JsonMember& each : object->members) {
    const std::optional<Clause> clause = clause_of(each.key, each.value);
    if (clause) {
      conditions.push_back(*clause);
    } else {
      reader.fail(key,
                  fmt::format("{} needs a value, a list, or one of not, has, beyond, above, below, "
                              "stated",
                              each.key));
    }
  }
  return conditions;
}

Values values_under(ObjectReader& reader, std::string_view key) {
  Values values;
  const JsonValue* object = reader.object(key, false);
  if (object == nullptr) return values;
  for (const JsonMember& each : object->members) values[each.key] = text_of(each.value);
  return values;
}

std::vector<std::pair<std::string, std::string>> pairs_under(ObjectReader& reader,
                                                             std::string_view key) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const JsonValue* object = reader.object(key, false);
  if (object == nullptr) return pairs;
  for (const JsonMember& each : object->members) {
    if (each.value.kind != JsonValue::Kind::array) {
      pairs.emplace_back(each.key, text_of(each.value));
      continue;
    }
    for (const JsonValue& one : each.value.elements) pairs.emplace_back(each.key, text_of(one));
  }
  return pairs;
}

SettingSpec setting_of(ObjectReader& reader) {
  SettingSpec spec;
  spec.name = reader.string("name");
  spec.kind = read_choice(reader, "kind", kKinds, SettingKind::text);
  spec.place = read_choice(reader, "place", kPlaces, SettingPlace::configuration);
  spec.field = reader.string_or("field", "");
  spec.words = pairs_under(reader, "words");
  spec.spellings = pairs_under(reader, "spellings");
  spec.states = values_under(reader, "states");
  spec.when = conditions_under(reader, "when");
  if (reader.has("numeric")) spec.numeric_when = conditions_under(reader, "numeric");
  spec.always = reader.boolean_or("always", false);
  spec.only_read = reader.boolean_or("only_read", spec.place == SettingPlace::script);
  spec.only_written = reader.boolean_or("only_written", false);
  spec.kept = reader.boolean_or("kept", false);
  spec.instead = pairs_under(reader, "instead");
  spec.fills = reader.string_or("fills", "");
  spec.unpriced = reader.string_or("unpriced", "");
  if (const JsonValue* assumed = reader.object("assumed", false)) {
    ObjectReader inner = reader.nested("assumed", *assumed);
    spec.assumed_when = conditions_under(inner, "when");
    spec.assumed = inner.string("says");
    inner.reject_unknown();
  }
  spec.among = texts_under(reader, "among");
  spec.least = reader.integer_or("least", spec.least, 0, 1'000'000);
  if (reader.has("open")) spec.open = reader.string("open");
  if (reader.has("bucket_of")) {
    spec.bucket_of = read_choice(reader, "bucket_of", kBuckets, BucketOf::gradients);
  }
  if (const JsonValue* of_model = reader.object("auto", false)) {
    ObjectReader inner = reader.nested("auto", *of_model);
    spec.of_model =
        AutoOfModel{inner.number("factor", 0, 1000), static_cast<int>(inner.integer("power", 1, 2)),
                    conditions_under(inner, "when")};
    inner.reject_unknown();
  }
  spec.refuses = texts_under(reader, "refuses");
  spec.meaning = reader.string_or("meaning", "");
  spec.source = reader.string_or("source", "");
  return spec;
}

}  // namespace shardwise
