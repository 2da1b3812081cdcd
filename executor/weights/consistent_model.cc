#include "executor/weights/consistent_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "executor/weights/config_json.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

JsonValue as_json(const ModelSpec& model) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, model);
  json.end_object();
  return *parse_json(json.text(), "model");
}

/// A value in a few words.
std::string text_of(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::integer:
      return fmt::format("{}", value.integer);
    case JsonValue::Kind::number:
      return fmt::format("{}", value.number);
    case JsonValue::Kind::string:
      return shown(value.string);
    case JsonValue::Kind::array:
      return fmt::format("{} element{}", value.elements.size(),
                         value.elements.size() == 1 ? "" : "s");
    case JsonValue::Kind::object:
      break;
  }
  const JsonValue* const name = value.find("name");
  return name == nullptr ? "an object" : shown(name->string);
}

struct Difference {
  std::string path;
  std::string message;
};

std::optional<Difference> difference(const JsonValue& said, const JsonValue& built,
                                     const std::string& path) {
  const auto of_both = [&] {
    return Difference{path, fmt::format("is {}, and the model that this family and these sizes "
                                        "give has {}",
                                        text_of(said), text_of(built))};
  };
  if (said.kind != built.kind) return of_both();
  if (said.kind == JsonValue::Kind::object) {
    for (const JsonMember& member : built.members) {
      const std::string below = json_pointer(path, member.key);
      const JsonValue* const mine = said.find(member.key);
      if (mine == nullptr) return Difference{below, "is missing"};
      if (auto found = difference(*mine, member.value, below)) return found;
    }
    for (const JsonMember& member : said.members) {
      if (built.find(member.key) != nullptr) continue;
      return Difference{json_pointer(path, member.key), "is none of this model's"};
    }
    return std::nullopt;
  }
  if (said.kind == JsonValue::Kind::array) {
    const std::size_t both = std::min(said.elements.size(), built.elements.size());
    for (std::size_t i = 0; i < both; ++i) {
      const std::string below = json_pointer(path, std::to_string(i));
      if (auto found = difference(said.elements[i], built.elements[i], below)) return found;
    }
    if (said.elements.size() != built.elements.size()) return of_both();
    return std::nullopt;
  }
  return text_of(said) == text_of(built) ? std::nullopt : std::optional(of_both());
}

Diagnostic refused(const std::string& path, const std::string& message) {
  return {"", 0, 0, path, message, "write the plan anew: shardwise plan --model … -o plan.json"};
}

}  // namespace

std::optional<Diagnostic> inconsistent(const ModelSpec& model) {
  const Result<JsonValue> config = parse_json(config_json(model), model.name);
  Result<ModelSpec> built =
      config ? read_model(*config, model.name, model.name) : Result<ModelSpec>(config.problems());
  if (!built) {
    const Diagnostic& first = built.problems().front();
    return refused(
        "/model",
        fmt::format("its sizes are those of no model: {} {}",
                    first.path.substr(std::min<std::size_t>(1, first.path.size())), first.message));
  }
  built->source = model.source;
  built->numerics = model.numerics;
  if (*built == model) return std::nullopt;
  if (const auto found = difference(as_json(model), as_json(*built), "/model")) {
    return refused(found->path, found->message);
  }
  return refused("/model", "is not the model that this family and these sizes give");
}

}  // namespace shardwise::exec
