#include "planner/export/write_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "planner/question/flags.h"
#include "planner/spec/json/json_line.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"

namespace shardwise {
namespace {

/// A key and its value, or the keys inside it.
struct Node {
  std::string key;
  JsonValue value;
  std::vector<Node> inside;
};

JsonValue scalar_of(const std::string& text, SettingKind kind) {
  JsonValue value;
  const std::optional<std::int64_t> integer = parse_integer(text);
  const std::optional<double> number = parse_number(text);
  if (kind == SettingKind::on || kind == SettingKind::boolean) {
    value.kind = JsonValue::Kind::boolean;
    value.boolean = text == "true";
  } else if (kind != SettingKind::text && integer) {
    value.kind = JsonValue::Kind::integer;
    value.integer = *integer;
  } else if (kind != SettingKind::text && number) {
    value.kind = JsonValue::Kind::number;
    value.number = *number;
  } else {
    value.kind = JsonValue::Kind::string;
    value.string = text;
  }
  return value;
}

JsonValue written_value(const WrittenSetting& setting) {
  if (setting.spec->kind != SettingKind::texts) return scalar_of(setting.value, setting.spec->kind);
  JsonValue list;
  list.kind = JsonValue::Kind::array;
  if (setting.value.empty()) return list;
  for (const std::string& part : split_at(setting.value, ',')) {
    list.elements.push_back(scalar_of(part, SettingKind::number));
  }
  return list;
}

/// What was kept, as it was read: json_line() wrote it.
JsonValue written_value(const KeptSetting& kept) {
  Result<JsonValue> value = parse_json(kept.value, "kept");
  SHARDWISE_CHECK(value.ok(), kept.value);
  return *std::move(value);
}

void put_value(std::vector<Node>& nodes, std::span<const std::string> keys, JsonValue value) {
  auto at = std::ranges::find(nodes, keys.front(), &Node::key);
  if (at == nodes.end()) at = nodes.insert(at, Node{keys.front(), {}, {}});
  if (keys.size() == 1) {
    at->value = std::move(value);
  } else {
    put_value(at->inside, keys.subspan(1), std::move(value));
  }
}

/// The settings as the keys that they are; those of a section stand together, in the order in which
/// they come, behind those that have none.
std::vector<Node> tree_of(const std::vector<WrittenSetting>& settings,
                          const std::vector<KeptSetting>& kept) {
  std::vector<Node> nodes;
  for (const WrittenSetting& each : settings) {
    if (each.spec->place != SettingPlace::configuration) continue;
    put_value(nodes, kept_keys(each.spec->name), written_value(each));
  }
  for (const KeptSetting& each : kept) put_value(nodes, kept_keys(each.name), written_value(each));
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const Node& node) { return node.inside.empty(); });
  return nodes;
}

/// A flag and its words. What looks like a flag stands behind "=": "--x=--y" is one word.
std::string flag_line(const KeptSetting& kept) {
  std::string line = shell_word(kept.name);
  if (kept.words.size() == 1 && kept.words.front().starts_with('-')) {
    return shell_word(kept.name + "=" + kept.words.front()) + "\n";
  }
  for (const std::string& word : kept.words) line += " " + shell_word(word);
  return line + "\n";
}

std::string arguments_text(const std::vector<WrittenSetting>& settings,
                           const std::vector<KeptSetting>& kept) {
  std::string text;
  for (const WrittenSetting& each : settings) {
    if (each.spec->place == SettingPlace::environment) continue;
    // The kept one says the same in other words.
    if (std::ranges::find(kept, each.spec->name, &KeptSetting::name) != kept.end()) continue;
    if (each.spec->kind == SettingKind::on) {
      if (each.value == "true") text += each.spec->name + "\n";
      continue;
    }
    text += each.spec->name;
    if (each.spec->kind == SettingKind::texts) {
      for (const std::string& word : split_at(each.value, ',')) text += " " + shell_word(word);
    } else {
      text += " " + shell_word(each.value);
    }
    text += "\n";
  }
  for (const KeptSetting& each : kept) text += flag_line(each);
  return text;
}

/// "--parallelism.x 2"; what has no section is a choice, which stands last: "name:value".
std::string overrides_text(const std::vector<WrittenSetting>& settings,
                           const std::vector<KeptSetting>& kept) {
  std::string text;
  std::string last;
  for (const WrittenSetting& each : settings) {
    if (each.spec->place == SettingPlace::environment) continue;
    if (!each.spec->name.starts_with("--")) {
      last += each.spec->name + ":" + each.value + "\n";
    } else if (each.spec->kind == SettingKind::boolean) {
      const std::size_t dot = each.spec->name.find('.') + 1;
      text += each.spec->name.substr(0, dot) + (each.value == "true" ? "" : "no-") +
              each.spec->name.substr(dot) + "\n";
    } else {
      text += each.spec->name + " " + shell_word(each.value) + "\n";
    }
  }
  for (const KeptSetting& each : kept) {
    // A recipe of its own stands in its place.
    const bool is_written = std::ranges::any_of(
        settings, [&](const WrittenSetting& setting) { return setting.spec->name == each.name; });
    if (!is_written) (each.name.starts_with('-') ? text : last) += flag_line(each);
  }
  return text + last;
}

void sort(std::vector<Node>& nodes) {
  std::ranges::sort(nodes, {}, &Node::key);
  for (Node& node : nodes) sort(node.inside);
}

void write(JsonWriter& json, const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    if (node.inside.empty()) {
      json.json_member(node.key, json_line(node.value));
      continue;
    }
    json.begin_object(node.key);
    write(json, node.inside);
    json.end_object();
  }
}

/// Keys of a section by name: those at the top stay in their order, before the sections.
std::string json_text(std::vector<Node> nodes) {
  const auto sections =
      std::ranges::find_if(nodes, [](const Node& n) { return !n.inside.empty(); });
  std::ranges::sort(sections, nodes.end(), {}, &Node::key);
  for (Node& node : nodes) sort(node.inside);
  JsonWriter json;
  json.begin_object();
  write(json, nodes);
  json.end_object();
  return json.text();
}

/// A word as it is; what YAML would read as something else in quotes.
/// Source: PyYAML's resolver, which has its own words for true, false and null.
std::string yaml_text(const std::string& text) {
  constexpr std::array<std::string_view, 10> kWords = {"null", "true", "false", "yes", "no",
                                                       "on",   "off",  "y",     "n",   ""};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool word =
      std::ranges::find(kWords, lower) == kWords.end() &&
      (lower.front() == '_' || lower.front() == '/' ||
       kLetters.find(lower.front()) != std::string_view::npos) &&
      lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-./,") == std::string::npos;
  if (word) return text;
  std::string quoted = json_quoted(text);
  if (quoted.find('\\') != std::string::npos) return quoted;
  quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string yaml_lines(const std::vector<Node>& nodes, const std::string& indent) {
  std::string text;
  for (const Node& node : nodes) {
    text += indent + yaml_text(node.key) + ":";
    if (!node.inside.empty()) {
      text += "\n" + yaml_lines(node.inside, indent + "  ");
    } else {
      const bool word = node.value.kind == JsonValue::Kind::string;
      text += " " + (word ? yaml_text(node.value.string) : json_line(node.value)) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string configuration_text(const Framework& framework,
                               const std::vector<WrittenSetting>& settings,
                               const std::vector<KeptSetting>& kept) {
  switch (framework.form) {
    case ConfigurationForm::arguments:
      return arguments_text(settings, kept);
    case ConfigurationForm::overrides:
      return overrides_text(settings, kept);
    case ConfigurationForm::yaml:
      return yaml_lines(tree_of(settings, kept), "");
    case ConfigurationForm::json:
    case ConfigurationForm::script:
      break;
  }
  return json_text(tree_of(settings, kept));
}

std::string environment_text(const std::vector<WrittenSetting>& settings) {
  std::string text;
  for (const WrittenSetting& each : settings) {
    if (each.spec->place != SettingPlace::environment) continue;
    text += each.value.empty()
                ? fmt::format("unset {}\n", each.spec->name)
                : fmt::format("export {}={}\n", each.spec->name, shell_word(each.value));
  }
  return text;
}

}  // namespace shardwise
