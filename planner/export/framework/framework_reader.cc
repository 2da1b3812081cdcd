#include "planner/export/framework/framework_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/export/framework/framework_fields.h"
#include "planner/export/framework/setting_values.h"
#include "planner/legality/refusals.h"
#include "planner/question/flags.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 5> kForms = {"arguments", "overrides", "json", "yaml",
                                                    "script"};

/// Reads each object of the list under `key`.
template <class T, class Read>
std::vector<T> list_of(ObjectReader& reader, std::string_view key, Read read) {
  std::vector<T> all;
  const JsonValue* list = reader.array(key, false);
  if (list == nullptr) return all;
  for (std::size_t i = 0; i < list->elements.size(); ++i) {
    ObjectReader each = reader.nested(key, i, list->elements[i]);
    all.push_back(read(each));
    each.reject_unknown();
  }
  return all;
}

Limit limit_of(ObjectReader& reader) {
  return {conditions_under(reader, "when"), reader.string("field"), texts_under(reader, "values"),
          reader.string_or("because", ""), texts_under(reader, "script")};
}

/// Adds the lists of `file` that several frameworks share, by name.
void add_shared_limits(const std::filesystem::path& file, const std::vector<std::string>& lists,
                       ObjectReader& framework, Diagnostics& problems, std::vector<Limit>& limits) {
  if (lists.empty()) return;
  const Result<JsonValue> root = read_json(file);
  if (!root) {
    problems.insert(problems.end(), root.problems().begin(), root.problems().end());
    return;
  }
  ObjectReader reader(*root, file.string(), "", problems);
  reader.require_schema("shardwise.framework_limits/1");
  for (const std::string& list : lists) {
    if (!reader.has(list)) {
      framework.fail("shares", fmt::format("{} has no list {}", file.filename().string(), list));
      continue;
    }
    for (Limit& limit : list_of<Limit>(reader, list, limit_of)) limits.push_back(std::move(limit));
  }
}

/// The default, which may be of any type: null and absent are none.
void read_defaults(const JsonValue& root, Framework& framework) {
  const JsonValue* list = root.find("settings");
  if (list == nullptr) return;
  for (std::size_t i = 0; i < framework.settings.size() && i < list->elements.size(); ++i) {
    const JsonValue* value = list->elements[i].find("default");
    SettingSpec& spec = framework.settings[i];
    if (value != nullptr && value->kind != JsonValue::Kind::null) {
      spec.by_default = canonical(spec.kind, text_of(*value)).value_or(text_of(*value));
    } else if (spec.kind == SettingKind::on) {
      spec.by_default = "false";
    }
  }
}

/// {"fp8": "--fp8-format"}; with "=" the value for which a switch is on: {"a=b": "--switch"}.
void read_keys(ObjectReader& reader, std::string_view under, bool negated, Framework& framework) {
  for (const auto& [name, flag] : values_under(reader, under)) {
    const std::size_t equals = name.find('=');
    const bool has_value = equals != std::string::npos;
    framework.keys.push_back(
        {name.substr(0, equals), has_value ? name.substr(equals + 1) : "", flag, negated});
  }
}

Choice choice_under(ObjectReader& reader) {
  Choice choice;
  choice.name = reader.string("name");
  choice.decides = texts_under(reader, "decides");
  choice.knows = texts_under(reader, "knows");
  choice.options = list_of<Option>(reader, "options", [](ObjectReader& each) {
    return Option{conditions_under(each, "plan"), values_under(each, "settings")};
  });
  return choice;
}

/// \param engines  one of which refuses what the layout rule of this name does
CheckRule rule_of(ObjectReader& reader, const std::vector<std::string>& engines) {
  CheckRule rule;
  rule.name = reader.string("name");
  rule.kind = read_choice(reader, "kind", kNamesOf<CheckRule::Kind>, CheckRule::Kind::refused);
  rule.after_parsing = reader.boolean_or("after_parsing", false);
  rule.when = conditions_under(reader, "when");
  rule.product = texts_under(reader, "product");
  rule.equals = reader.string_or("of", "");
  rule.divides = reader.boolean_or("divides", false);
  rule.contradiction = reader.boolean_or("contradiction", false);
  rule.at = reader.string("at");
  rule.or_at = reader.string_or("or_at", "");
  rule.says = reader.string("says");
  rule.fix = reader.string("fix");
  const std::string of_engine = reader.string_or("layout_rule", "");
  rule.source = of_engine.empty() ? reader.string("source") : refused_at(engines, of_engine);
  if (rule.source.empty()) reader.fail("layout_rule", "none of the engines refuses it");
  return rule;
}

/// Names that conditions on settings may have besides the settings: "@gpus" of the job, "@adamw" of
/// the plan.
bool is_fact(const std::string& name) { return name.starts_with('@'); }

void check_names(const Framework& framework, ObjectReader& reader) {
  const auto known = [&](std::string_view key, const std::string& name) {
    if (is_fact(name) || framework.find(name) != nullptr) return;
    reader.fail(key, fmt::format("{} is none of the settings", name));
  };
  for (const SettingSpec& spec : framework.settings) {
    if (framework.find(spec.name) != &spec) {
      reader.fail("settings", fmt::format("{} stands there twice", spec.name));
    }
    if (!spec.fills.empty()) known("settings", spec.fills);
    for (const Clause& clause : spec.assumed_when) known("settings", clause.name);
    for (const auto& [name, value] : spec.states) known("settings", name);
  }
  for (const std::string& mark : framework.marks) {
    const bool section = std::ranges::any_of(framework.settings, [&](const SettingSpec& spec) {
      return spec.name.starts_with(mark + ".");
    });
    if (!section) known("marks", mark);
  }
  for (const Choice& choice : framework.choices) {
    for (const std::string& name : choice.decides) known("choices", name);
    for (const std::string& name : choice.knows) known("choices", name);
    for (const Option& option : choice.options) {
      for (const auto& [name, value] : option.settings) known("choices", name);
    }
  }
  for (const CheckRule& rule : framework.rules) {
    for (const Clause& clause : rule.when) known("rules", clause.name);
    for (const std::string& factor : rule.product) {
      if (!parse_integer(factor)) known("rules", factor);
    }
    known("rules", rule.at);
    if (!rule.or_at.empty()) known("rules", rule.or_at);
  }
  for (const KeyOfFlag& each : framework.keys) {
    const auto& others = framework.known_keys;
    if (std::ranges::find(others, each.flag) == others.end()) known("keys", each.flag);
  }
  for (const Preset& preset : framework.presets) {
    for (const auto& [name, value] : preset.settings) known("presets", name);
  }
}

}  // namespace

const SettingSpec* Framework::find(const std::string& setting) const {
  const auto at =
      std::ranges::find_if(settings, [&](const SettingSpec& s) { return s.name == setting; });
  return at == settings.end() ? nullptr : &*at;
}

const std::string& Framework::source_of(const std::string& what) const {
  const auto at = sources.find(what);
  return at == sources.end() ? code : at->second;
}

std::vector<std::string> Framework::scripts() const {
  if (form != ConfigurationForm::script) return {};
  std::vector<std::string> files = {program};
  files.insert(files.end(), modules.begin(), modules.end());
  return files;
}

Result<Framework> read_framework(const std::filesystem::path& path) {
  const Result<JsonValue> root = read_json(path);
  if (!root) return root.problems();
  Diagnostics problems;
  ObjectReader reader(*root, path.string(), "", problems);
  reader.require_schema("shardwise.framework/1");
  Framework framework;
  framework.name = reader.string("name");
  framework.label = reader.string("label");
  framework.version = reader.string("version");
  framework.package = reader.string("package");
  framework.code = reader.string("code");
  framework.form = read_choice(reader, "form", kForms, ConfigurationForm::arguments);
  framework.file = reader.string("file");
  framework.program = reader.string("program");
  framework.modules = texts_under(reader, "modules");
  framework.launcher = reader.string_or("launcher", "torchrun");
  framework.engines = texts_under(reader, "engines");
  framework.marks = texts_under(reader, "marks");
  framework.known_keys = texts_under(reader, "known_keys");
  framework.removed_keys = texts_under(reader, "removed_keys");
  framework.removed_flags = pairs_under(reader, "removed_flags");
  framework.sections = texts_under(reader, "sections");
  framework.loose_sections = texts_under(reader, "loose_sections");
  framework.prefixes = pairs_under(reader, "prefixes");
  framework.objects = texts_under(reader, "objects");
  framework.takes_unknown = reader.boolean_or("takes_unknown", false);
  read_keys(reader, "keys", false, framework);
  read_keys(reader, "negated_keys", true, framework);
  framework.keys_without_flags = texts_under(reader, "keys_without_flags");
  framework.switches = texts_under(reader, "switches");
  framework.several_words = texts_under(reader, "several_words");
  framework.file_flag = reader.string_or("file_flag", "");
  framework.sources = values_under(reader, "sources");
  framework.two_values_source = reader.string_or("two_values_source", "");
  framework.settings = list_of<SettingSpec>(reader, "settings", [](ObjectReader& each) {
    static_cast<void>(each.has("default"));
    return setting_of(each);
  });
  framework.choices = list_of<Choice>(reader, "choices", choice_under);
  framework.presets = list_of<Preset>(reader, "presets", [](ObjectReader& each) {
    return Preset{conditions_under(each, "when"), values_under(each, "settings")};
  });
  if (const JsonValue* recipes = reader.object("recipes", false)) {
    ObjectReader inner = reader.nested("recipes", *recipes);
    framework.recipes = {inner.string("module"), inner.string("recipe"),
                         pairs_under(inner, "known"), pairs_under(inner, "trains")};
    inner.reject_unknown();
  }
  framework.limits = list_of<Limit>(reader, "limits", limit_of);
  framework.unstated = list_of<Limit>(reader, "unstated", limit_of);
  add_shared_limits(path.parent_path() / "shared" / "limits.json", texts_under(reader, "shares"),
                    reader, problems, framework.limits);
  framework.refusals = list_of<Refusal>(reader, "refusals", [](ObjectReader& each) {
    return Refusal{conditions_under(each, "when"), each.string("because"), each.string("fix")};
  });
  framework.by_script = list_of<ScriptField>(reader, "by_script", [](ObjectReader& each) {
    return ScriptField{each.string("field"), each.string("says")};
  });
  framework.rules = list_of<CheckRule>(
      reader, "rules", [&](ObjectReader& each) { return rule_of(each, framework.engines); });
  read_defaults(*root, framework);
  if (framework.engines.empty()) reader.fail("engines", "names no engine");
  check_names(framework, reader);
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return framework;
}

std::vector<std::string> framework_names() { return catalogue_names("frameworks"); }

Result<Framework> load_framework(const std::string& name, const std::string& flag) {
  const std::vector<std::string> names = framework_names();
  if (std::ranges::find(names, name) == names.end()) {
    const std::optional<std::string> near = nearest(name, names);
    return wrong_flag(flag, fmt::format("no framework {}", name),
                      near ? fmt::format("did you mean {}?", *near)
                           : fmt::format("there are {}", fmt::join(names, ", ")));
  }
  const Result<CatalogueFile> found = find_in_catalogue("frameworks", name);
  if (!found) return found.problems();
  return read_framework(found->path);
}

Result<std::string> read_beside(const std::string& framework, const std::string& file) {
  const Result<CatalogueFile> found = find_in_catalogue("frameworks", framework);
  if (!found) return found.problems();
  return read_file(found->path.parent_path() / file);
}

}  // namespace shardwise
