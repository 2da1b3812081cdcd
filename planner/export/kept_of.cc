#include "planner/export/kept_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/export/derived_facts.h"
#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/recipe.h"
#include "planner/export/framework/setting_values.h"
#include "planner/export/other_words.h"
#include "planner/spec/json/json_line.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Whether one is the other, or inside it.
bool overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto mismatch = std::ranges::mismatch(a, b);
  return mismatch.in1 == a.end() || mismatch.in2 == b.end();
}

/// The value of a kept flag; a switch is there or not.
std::string kept_value(const SettingSpec& spec, const KeptSetting& kept) {
  if (kept.words.empty()) return spec.kind == SettingKind::on ? "true" : "";
  const std::string text = fmt::format("{}", fmt::join(kept.words, ","));
  return canonical(spec.kind, text).value_or(text);
}

/// Without dashes, which in a problem of a plan would name a field of it.
std::string without_dashes(const std::string& name) {
  return shown(name.substr(std::min(name.find_first_not_of('-'), name.size())));
}

/// Keeps settings in order; of flags that stand twice the last, as programs read them.
class Keeper {
 public:
  Keeper(const Framework& framework, const Settings& settings, KeptSettings& kept)
      : framework_(framework), settings_(settings), kept_(kept) {}

  /// Keeps what the table does not read, unless it is in the way of what the plan decides.
  void keep_unread(const GivenSetting& given) {
    const std::string name = (given.value ? of_key(given) : of_flag(given)).name;
    if (name.empty()) return;
    if (const SettingSpec* spec = decided_setting(framework_, name)) {
      // "auto" is open: export writes the plan's value.
      if (std::ranges::find(settings_.open, spec->name) != settings_.open.end()) return;
      beside_.push_back({given.file, given.line, given.column, shown(given.path),
                         fmt::format("cannot stand beside {}, which the plan decides", spec->name),
                         "take it out"});
      return;
    }
    keep(given);
  }

  void keep(const GivenSetting& given) {
    KeptSetting setting = given.value ? of_key(given) : of_flag(given);
    if (given.value && setting.name.empty()) return;
    const auto same = std::ranges::find(kept_.settings, setting.name, &KeptSetting::name);
    if (same != kept_.settings.end()) {
      if (!given.value) {
        *same = std::move(setting);
        return;
      }
      if (given.value->kind == JsonValue::Kind::null) return;
    }
    kept_.settings.push_back(std::move(setting));
    places_.push_back(&given);
  }

  Diagnostics problems() const {
    std::vector<KeptProblem> wrong = problems_of(kept_.settings);
    Diagnostics problems = beside_;
    for (KeptProblem& each : wrong) {
      const GivenSetting& place = *places_[each.at];
      problems.push_back({place.file, place.line, place.column, shown(place.path),
                          std::move(each.message), std::move(each.hint)});
    }
    return problems;
  }

 private:
  KeptSetting of_flag(const GivenSetting& given) const {
    const bool choice = framework_.form == ConfigurationForm::overrides &&
                        !given.name.starts_with('-') && given.words.size() == 1;
    if (choice) return {given.name + ":" + given.words.front(), {}, ""};
    return {given.name, given.words, ""};
  }

  /// Without a name where the key says nothing.
  KeptSetting of_key(const GivenSetting& given) const {
    if (!given.value) return {};
    const JsonValue& value = *given.value;
    if (!framework_.takes_words()) {
      const bool empty = value.kind == JsonValue::Kind::null ||
                         (value.kind == JsonValue::Kind::object && value.members.empty());
      // A section whose settings are written has no other value.
      const bool section = std::ranges::any_of(framework_.settings, [&](const SettingSpec& spec) {
        return spec.name.starts_with(given.name + ".");
      });
      if (empty && section) return {};
      return {
          kept_name(given.kept_path.empty() ? given.path : given.kept_path), {}, json_line(value)};
    }
    if (value.kind == JsonValue::Kind::null) return {};
    const TableName own = table_name(framework_, given);
    const std::string flag =
        framework_.form == ConfigurationForm::arguments ? own.name : "--" + given.name;
    if (!own.on_for.empty()) return {flag, {}, ""};
    if (value.kind == JsonValue::Kind::boolean) {
      return value.boolean != own.negated ? KeptSetting{flag, {}, ""} : KeptSetting{};
    }
    return {flag, given.words, ""};
  }

  const Framework& framework_;
  const Settings& settings_;
  KeptSettings& kept_;
  Diagnostics beside_;                       // keys in the way of those that the plan decides
  std::vector<const GivenSetting*> places_;  // of each
};

/// What kept keys say of the plan, as import reads them; of a value that no plan has nothing.
Values kept_facts(const Framework& framework, const KeptSettings& kept) {
  Values facts;
  for (const KeptSetting& each : kept.settings) {
    const SettingSpec* spec = framework.find(each.name);
    if (spec == nullptr || !spec->kept || spec->field.empty() || each.value.empty()) continue;
    const Result<JsonValue> value = parse_json(each.value, "kept");
    if (!value) continue;
    const bool is_text = value->kind == JsonValue::Kind::string;
    const auto said = ours(*spec, is_text ? value->string : json_line(*value));
    if (said) facts[spec->field] = *said;
  }
  if (const auto kind = facts.find("optimizer"); kind != facts.end() && kind->second == "sgd") {
    add_momentum(facts);
  }
  return facts;
}

}  // namespace

const SettingSpec* decided_setting(const Framework& framework, const std::string& name) {
  const bool choice = framework.takes_words() && !name.starts_with('-');
  const std::string own =
      table_name(framework, choice ? name.substr(0, name.find(':')) : name).name;
  const std::vector<std::string> keys = kept_keys(own);
  for (const SettingSpec& spec : framework.settings) {
    if (spec.place != SettingPlace::configuration) continue;
    const bool same =
        framework.takes_words() ? spec.name == own : overlap(keys, kept_keys(spec.name));
    if (same && (!says_nothing(framework, spec) || keys != kept_keys(spec.name))) return &spec;
  }
  return nullptr;
}

Result<KeptSettings> kept_of(const Framework& framework, const Configuration& configuration,
                             const Settings& settings, const Plan& plan) {
  const OtherWords other(framework, plan);
  const bool other_recipe = is_other_recipe(framework, settings.values);
  KeptSettings kept{framework.name, {}};
  Keeper keeper(framework, settings, kept);
  // In the order in which they are given.
  std::map<const GivenSetting*, bool, std::less<>> unread;
  for (const GivenSetting* each : settings.unknown) unread[each] = true;
  for (const auto& [name, given] : settings.given) {
    const SettingSpec& spec = *framework.find(name);
    const bool names_recipe = spec.field == "model" && other_recipe;
    if (!names_recipe && !says_nothing(framework, spec) &&
        !other.say_it(spec, settings.values.at(name)))
      continue;
    unread[given] = false;
  }
  for (const auto& [given, is_unread] : unread) {
    is_unread ? keeper.keep_unread(*given) : keeper.keep(*given);
  }
  // "auto" and null are no values of settings, but somebody wrote them.
  const auto keep_unread = [&](const GivenSetting& each) {
    const SettingSpec* spec = framework.find(each.name);
    const bool read = settings.given.contains(each.name) ||
                      std::ranges::find(settings.unknown, &each) != settings.unknown.end();
    if (each.value && !each.open && !read && (spec == nullptr || says_nothing(framework, *spec))) {
      keeper.keep_unread(each);
    }
  };
  if (!framework.takes_words()) {
    for (const GivenSetting& each : configuration.settings) keep_unread(each);
    for (const GivenSetting& each : configuration.nulls) keep_unread(each);
  }
  if (kept.settings.empty()) kept.framework.clear();
  Diagnostics problems = keeper.problems();
  if (!problems.empty()) return problems;
  return kept;
}

Diagnostics check_kept(const Framework& framework, const Plan& plan) {
  Diagnostics problems;
  const KeptSettings& kept = plan.kept;
  if (kept.framework != framework.name) return problems;
  const OtherWords other(framework, plan);
  const Values said = kept_facts(framework, kept);
  const Values own = said.empty() ? Values() : facts_of(plan);
  for (std::size_t i = 0; i < kept.settings.size(); ++i) {
    const KeptSetting& each = kept.settings[i];
    const SettingSpec* keeps = framework.find(each.name);
    const auto stated = keeps == nullptr ? said.end() : said.find(keeps->field);
    const auto decided = stated == said.end() ? own.end() : own.find(stated->first);
    const auto wrong = [&](std::string message, std::string hint) {
      problems.push_back({"", 0, 0, fmt::format("/kept/settings/{}/name", i), std::move(message),
                          std::move(hint)});
    };
    const bool flag = each.value.empty() && each.name.starts_with('-');
    const bool choice =
        each.value.empty() && framework.form == ConfigurationForm::overrides && !flag;
    if (framework.takes_words() ? !flag && !choice : each.value.empty()) {
      wrong(fmt::format("{} is no {} of {}", without_dashes(each.name),
                        framework.takes_words() ? "flag" : "key with a value", framework.label),
            "take it out");
    } else if (const SettingSpec* spec = decided_setting(framework, each.name);
               spec != nullptr && kept_recipe(framework, *spec, kept) == nullptr &&
               !other.say_it(*spec, kept_value(*spec, each))) {
      wrong(fmt::format("{} is what the plan decides", without_dashes(spec->name)),
            "change the plan instead");
    } else if (decided != own.end() && decided->second != stated->second) {
      wrong(fmt::format("{} says {} {}, and the plan has {}", without_dashes(each.name),
                        stated->first, stated->second, decided->second),
            "take it out, and state it behind run.sh or in the script");
    }
  }
  return problems;
}

}  // namespace shardwise
