#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/export/derived_facts.h"
#include "planner/export/framework/setting_values.h"
#include "planner/export/import_plan.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// A value that the framework's file has, in the one spelling of settings_of().
std::string spelt(const Framework& framework, const std::string& setting,
                  const std::string& value) {
  return canonical(framework.find(setting)->kind, value).value_or(value);
}

/// Of an option: the layers of a stage, or more.
constexpr const char* kStageLayers = "@stage_layers";

/// Layers of the model's first stage; nothing where the configuration does not say.
std::optional<std::int64_t> stage_layers(const Framework& framework, const Values& values,
                                         const Values& facts) {
  const auto layers = facts.find("model.num_hidden_layers");
  if (layers == facts.end()) return std::nullopt;
  std::int64_t stages = 1;
  for (const SettingSpec& spec : framework.settings) {
    const auto at = values.find(spec.name);
    if (spec.field != "pp" || at == values.end()) continue;
    stages = std::max<std::int64_t>(parse_integer(at->second).value_or(1), 1);
  }
  return (parse_integer(layers->second).value_or(0) + stages - 1) / stages;
}

bool settings_hold(const Option& option, const Framework& framework, const Values& values,
                   const Values& facts) {
  return std::ranges::all_of(option.settings, [&](const auto& wanted) {
    const auto at = values.find(wanted.first);
    if (at == values.end()) return false;
    if (wanted.second != kStageLayers) {
      return at->second == spelt(framework, wanted.first, wanted.second);
    }
    const std::optional<std::int64_t> stated = parse_integer(at->second);
    const std::optional<std::int64_t> all = stage_layers(framework, values, facts);
    return stated && all && *stated >= *all;
  });
}

/// A condition on what is not known yet may hold.
bool may_hold(const Conditions& conditions, const Values& facts) {
  return std::ranges::all_of(conditions, [&](const Clause& clause) {
    return !facts.contains(clause.name) || holds(clause, facts);
  });
}

/// Problem of a setting whose value is not among those that a plan can have.
Diagnostic nothing_in_a_plan(const SettingSpec& spec, const GivenSetting& place,
                             const std::string& value, const std::vector<std::string>& known) {
  const auto instead = std::ranges::find_if(spec.instead, [&](const auto& each) {
    return each.first == value || each.first == "*";  // "*", the last: any other
  });
  const bool is_explained = instead != spec.instead.end();
  return {place.file,
          place.line,
          place.column,
          place.path,
          fmt::format("no plan has {}", shown(value)),
          is_explained ? instead->second
                       : fmt::format("a plan can have {} {}", spec.name, fmt::join(known, " or "))};
}

/// The values that options of a choice have for a setting.
std::vector<std::string> known_values(const Choice& choice, const std::string& setting) {
  std::vector<std::string> known;
  for (const Option& option : choice.options) {
    const auto at = option.settings.find(setting);
    if (at == option.settings.end() || at->second == kStageLayers) continue;
    if (std::ranges::find(known, at->second) == known.end()) known.push_back(at->second);
  }
  return known;
}

/// What the other settings of a choice need to be for a value of one of them, as the option that is
/// nearest to them has it: "with --recompute-num-layers 1, not 4".
std::string needed_beside(const Framework& framework, const Choice& choice,
                          const Settings& settings, const Values& facts, const std::string& name) {
  std::vector<std::string> best;
  bool found = false;
  for (const Option& option : choice.options) {
    const auto own = option.settings.find(name);
    if (own == option.settings.end() ||
        spelt(framework, name, own->second) != settings.values.at(name)) {
      continue;
    }
    std::vector<std::string> needed;
    const std::optional<std::int64_t> layers = stage_layers(framework, settings.values, facts);
    const bool is_of_stage = std::ranges::any_of(
        option.settings, [](const auto& each) { return each.second == kStageLayers; });
    if (is_of_stage && !layers) continue;
    for (const auto& [setting, value] : option.settings) {
      const std::string wanted = value == kStageLayers
                                     ? fmt::format("{} (all layers of a stage)", *layers)
                                     : spelt(framework, setting, value);
      const auto at = settings.values.find(setting);
      if (at != settings.values.end() && at->second == wanted) continue;
      if (framework.find(setting)->kind == SettingKind::on) {
        needed.push_back(fmt::format("{} {}", wanted == "true" ? "with" : "without", setting));
        continue;
      }
      const bool is_there = at != settings.values.end() && !at->second.empty();
      needed.push_back(fmt::format("with {} {}{}", setting, wanted,
                                   is_there ? ", not " + shown(at->second) : ""));
    }
    if (found && needed.size() >= best.size()) continue;
    best = std::move(needed);
    found = true;
  }
  return fmt::format("{}", fmt::join(best, " and "));
}

/// What the choice makes of its settings is what they say, or a problem.
void check_choice(const Framework& framework, const Choice& choice, const Option* taken,
                  const Settings& settings, const Values& facts, Diagnostics& problems) {
  const auto check = [&](const std::string& name, bool decides) {
    const auto given = settings.given.find(name);
    if (given == settings.given.end()) return;
    const std::string& stated = settings.values.at(name);
    const std::vector<std::string> known = known_values(choice, name);
    const bool known_word = std::ranges::any_of(
        known, [&](const std::string& each) { return spelt(framework, name, each) == stated; });
    const bool is_taken = taken != nullptr && taken->settings.contains(name) &&
                          spelt(framework, name, taken->settings.at(name)) == stated;
    if (is_taken || (known_word && !decides)) return;
    Diagnostic problem = nothing_in_a_plan(*framework.find(name), *given->second, stated, known);
    if (known_word) {
      const std::string needed = needed_beside(framework, choice, settings, facts, name);
      problem.hint = needed.empty() ? fmt::format("not with what else is stated of {}", choice.name)
                                    : fmt::format("{} {} is read {}", name, shown(stated), needed);
    }
    problems.push_back(std::move(problem));
  };
  for (const std::string& name : choice.decides) check(name, true);
  for (const std::string& name : choice.knows) check(name, false);
}

/// A setting is filled in later.
bool is_open(const std::string& name, const Settings& settings) {
  return std::ranges::find(settings.open, name) != settings.open.end();
}

/// A setting of the choice is filled in later.
bool is_open(const Choice& choice, const Settings& settings) {
  return std::ranges::any_of(
      settings.open, [&](const std::string& name) { return !known_values(choice, name).empty(); });
}

void take_choices(const Framework& framework, const Settings& settings, Values& facts,
                  Diagnostics& problems) {
  for (const Choice& choice : framework.choices) {
    if (is_open(choice, settings)) continue;
    const auto taken = std::ranges::find_if(choice.options, [&](const Option& option) {
      return settings_hold(option, framework, settings.values, facts) &&
             may_hold(meant(option.plan, facts), facts);
    });
    const Option* option = taken == choice.options.end() ? nullptr : &*taken;
    check_choice(framework, choice, option, settings, facts, problems);
    if (option == nullptr) continue;
    for (const Clause& clause : meant(option->plan, facts)) {
      if (clause.kind == Clause::Kind::is && clause.texts.size() == 1) {
        facts.emplace(clause.name, clause.texts.front());
      }
    }
  }
}

/// Facts by the settings that have their field. What is stated counts before a default.
/// \param problems   takes values that no plan has
/// \param conflicts  takes settings that state another value of a field than one before them
void take_fields(const Framework& framework, const Settings& settings, Values& facts,
                 Diagnostics& problems, Diagnostics& conflicts) {
  std::map<std::string, const GivenSetting*> stated;  // by field
  for (const SettingSpec& spec : framework.settings) {
    if (spec.field.empty() || spec.only_written || spec.field.starts_with("model.")) continue;
    const auto at = settings.values.find(spec.name);
    if (at == settings.values.end() || !holds(spec.when, facts)) continue;
    if (spec.open == at->second || is_open(spec.name, settings)) continue;
    const auto given = settings.given.find(spec.name);
    const bool is_stated = given != settings.given.end();
    const auto before = stated.find(spec.field);
    if (!is_stated && before != stated.end()) continue;
    const std::optional<std::string> value = ours(spec, at->second);
    if (!value) {
      // Of a recipe outside the table a user names the model.
      if (!is_stated || spec.field == "model" || spec.kept) continue;
      std::vector<std::string> known;
      for (const auto& [our_word, their_word] : spec.words) {
        if (std::ranges::find(known, their_word) == known.end()) known.push_back(their_word);
      }
      problems.push_back(nothing_in_a_plan(spec, *given->second, at->second, known));
      continue;
    }
    // Of two that name the model the last is the recipe, the first its family.
    if (before != stated.end() && facts.at(spec.field) != *value && spec.field != "model") {
      const GivenSetting& place = *given->second;
      conflicts.push_back(
          {place.file, place.line, place.column, place.path,
           fmt::format("{}, but {} has {}", at->second, before->second->path, facts.at(spec.field)),
           "a plan has one value for both"});
      continue;
    }
    facts[spec.field] = *value;
    facts["ranks_per_shard"] = std::to_string(  // of the degrees so far, for settings behind them
        std::min(degree(facts, "tp") * degree(facts, "cp"), kMostFact) *
        degree(facts, "dp_replicate"));
    if (is_stated) stated[spec.field] = given->second;
  }
}

/// Gives facts that are those of another, "@nodes", its value; without one they are not known.
void resolve(Values& facts) {
  for (auto& [name, value] : facts) value = meant(value, facts);
  std::erase_if(facts, [](const auto& fact) { return fact.second.starts_with('@'); });
}

/// Gives fields that nothing states the one value that the framework has.
void take_limits(const std::vector<Limit>& limits, Values& facts) {
  for (const Limit& limit : limits) {
    if (limit.values.size() != 1 || limit.values.front().starts_with('@')) continue;
    if (holds(limit.when, facts)) facts.emplace(limit.field, limit.values.front());
  }
}

}  // namespace

Diagnostics two_values_of(const Framework& framework, const Settings& settings) {
  Values facts;
  Diagnostics other_problems;
  Diagnostics conflicts;
  take_choices(framework, settings, facts, other_problems);
  take_fields(framework, settings, facts, other_problems, conflicts);
  return conflicts;
}

Values facts_of(const Framework& framework, const Settings& settings, Values known,
                Diagnostics& problems) {
  Values facts = std::move(known);
  if (framework.engines.size() == 1) facts.emplace("engine", framework.engines.front());
  take_choices(framework, settings, facts, problems);
  take_fields(framework, settings, facts, problems, problems);
  resolve(facts);
  derive_facts(framework, settings, facts, problems);
  take_limits(framework.unstated, facts);
  take_limits(framework.limits, facts);
  return facts;
}

}  // namespace shardwise
