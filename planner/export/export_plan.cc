#include "planner/export/export_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/framework/recipe.h"
#include "planner/export/framework/setting_values.h"
#include "planner/export/plan_comparison.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

Diagnostic cannot(const Framework& framework, const std::string& because, const std::string& fix) {
  return {"", 0, 0, "", fmt::format("{}: {}", framework.label, because), fix};
}

/// Fields that the framework's file names and no plan has.
Diagnostics unknown_fields(const Framework& framework, const Values& facts) {
  Diagnostics problems;
  const auto known = [&](const std::string& field) {
    if (facts.contains(field)) return;
    problems.push_back(cannot(framework,
                              fmt::format("its file names {}, no field of a plan", field),
                              fmt::format("configs/frameworks/{}.json", framework.name)));
  };
  for (const Limit& limit : framework.limits) {
    known(limit.field);
    for (const std::string& value : limit.values) {
      if (value.starts_with('@')) known(value.substr(1));
    }
  }
  for (const ScriptField& each : framework.by_script) known(each.field);
  return problems;
}

/// Brings the facts within what the framework does. \returns what was changed
std::vector<Substitution> substitute(const Framework& framework, Values& facts) {
  std::vector<Substitution> changes;
  for (const Limit& limit : framework.limits) {
    if (!holds(limit.when, facts)) continue;
    std::string& value = facts.at(limit.field);
    const bool within = std::ranges::any_of(
        limit.values, [&](const std::string& each) { return meant(each, facts) == value; });
    if (within) continue;
    Substitution change{limit.field,   value,       meant(limit.values.front(), facts),
                        limit.because, Bytes(0),    Seconds(0),
                        false,         limit.script};
    value = change.to;
    changes.push_back(std::move(change));
  }
  return changes;
}

/// The plan after each change that leaves it legal; the last is what is exported.
Result<Plan> price(const Plan& plan, const Values& facts, std::vector<Substitution>& changes) {
  Result<Plan> whole = plan_of(plan, facts);
  if (!whole) return whole;
  Values now = facts_of(plan);
  Evaluation before = evaluation_of(with_stated_reductions(plan));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now[changes[i].field] = changes[i].to;
    const bool last = i + 1 == changes.size();
    const Result<Plan> one = last ? Result<Plan>(*whole) : plan_of(plan, now);
    if (!one) continue;  // legal with a later one: counted there
    const Evaluation after = evaluation_of(*one);
    changes[i].priced = true;
    changes[i].memory_change = after.point - before.point;
    changes[i].time_change = after.step_time - before.step_time;
    before = after;
  }
  // The same by another name is no news.
  std::erase_if(changes, [](const Substitution& change) { return change.because.empty(); });
  return whole;
}

/// What a framework is told, by name.
struct ToldSettings {
  Values values;
  Diagnostics problems;
};

void choose(const Framework& framework, const Values& facts, ToldSettings& settings) {
  for (const Choice& choice : framework.choices) {
    const auto taken = std::ranges::find_if(choice.options, [&](const Option& option) {
      return holds(meant(option.plan, facts), facts);
    });
    if (taken == choice.options.end()) {
      settings.problems.push_back(cannot(framework,
                                         fmt::format("no setting for the plan's {}", choice.name),
                                         "docs/frameworks.md lists what there is"));
      continue;
    }
    for (const auto& [name, value] : taken->settings) settings.values[name] = value;
  }
}

void fill_settings(const Framework& framework, const Values& facts, const KeptSettings& kept,
                   ToldSettings& settings) {
  for (const SettingSpec& spec : framework.settings) {
    if (spec.field.empty() || spec.only_read || spec.kept || !holds(spec.when, facts)) continue;
    if (const KeptSetting* recipe = kept_recipe(framework, spec, kept)) {
      settings.values[spec.name] = recipe->words.front();
      continue;
    }
    const auto at = facts.find(spec.field);
    if (at == facts.end()) continue;
    const std::optional<std::string> value = theirs(spec, at->second);
    if (value) {
      settings.values[spec.name] = *value;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [our_word, their_word] : spec.words) known.push_back(our_word);
    settings.problems.push_back(cannot(
        framework, fmt::format("{} has no value for {} {}", spec.name, spec.field, at->second),
        fmt::format("it has one for {}", fmt::join(known, ", "))));
  }
}

/// What stands where nothing is written: the framework's default, or its preset's.
std::optional<std::string> default_of(const Framework& framework, const SettingSpec& spec,
                                      const Values& values) {
  for (const Preset& preset : framework.presets) {
    const auto at = preset.settings.find(spec.name);
    if (at != preset.settings.end() && holds(preset.when, values)) return at->second;
  }
  return spec.by_default;
}

/// Those that are not left out, in the order of the framework's file. Of a recipe whose values are
/// not known all are written.
std::vector<WrittenSetting> written(const Framework& framework, const Values& told) {
  std::vector<WrittenSetting> settings;
  const bool defaults_are_known = knows_recipe(framework, told);
  for (const SettingSpec& spec : framework.settings) {
    const auto at = told.find(spec.name);
    if (at == told.end()) continue;
    if (defaults_are_known && !spec.always && default_of(framework, spec, told) == at->second)
      continue;
    settings.push_back({&spec, at->second});
  }
  return settings;
}

/// What a model is but for how its router weighs experts.
Values facts_without_router(const ModelSpec& model) {
  Values facts = model_facts(model);
  std::erase_if(facts, [](const auto& each) {
    return std::string_view(each.first).starts_with("model.router_");
  });
  return facts;
}

}  // namespace

Result<Values> told_settings(const Framework& framework, const Values& facts,
                             const KeptSettings& kept) {
  ToldSettings settings;
  choose(framework, facts, settings);
  fill_settings(framework, facts, kept, settings);
  if (!settings.problems.empty()) return settings.problems;
  for (auto& [name, value] : settings.values) {
    value = canonical(framework.find(name)->kind, value).value_or(value);
  }
  return std::move(settings.values);
}

std::optional<std::vector<WrittenSetting>> told_as_it_is(const Framework& framework,
                                                         const Plan& plan) {
  const auto& engines = framework.engines;
  if (std::ranges::find(engines, plan.engine.name) == engines.end()) return std::nullopt;
  Values facts = facts_of(plan);
  if (!unknown_fields(framework, facts).empty()) return std::nullopt;
  const bool refused = std::ranges::any_of(
      framework.refusals, [&](const Refusal& each) { return holds(each.when, facts); });
  if (refused) return std::nullopt;
  for (const Substitution& each : substitute(framework, facts)) {
    if (!each.because.empty()) return std::nullopt;
  }
  const Result<Values> told = told_settings(framework, facts, plan.kept);
  if (!told) return std::nullopt;
  return written(framework, *told);
}

Result<Export> export_plan(const Plan& plan, const Framework& framework) {
  Values facts = facts_of(plan);
  std::vector<Substitution> changes;
  if (std::ranges::find(framework.engines, plan.engine.name) == framework.engines.end()) {
    const std::string& other = framework.engines.front();
    changes.push_back({"engine", plan.engine.name, other,
                       fmt::format("{} is another system", plan.engine.label), Bytes(0),
                       Seconds(0)});
    facts["engine"] = other;
  }
  Diagnostics problems = unknown_fields(framework, facts);
  for (const Refusal& refusal : framework.refusals) {
    if (!holds(refusal.when, facts)) continue;
    problems.push_back(cannot(framework, refusal.because, refusal.fix));
  }
  if (!problems.empty()) return problems;
  std::vector<Substitution> more = substitute(framework, facts);
  std::ranges::move(more, std::back_inserter(changes));
  Result<Plan> run = price(plan, facts, changes);
  if (!run) return run.problems();

  const Result<Values> told = told_settings(framework, facts_of(*run), plan.kept);
  if (!told) return told.problems();
  const Evaluation planned = evaluation_of(with_stated_reductions(plan));
  const Evaluation exported = evaluation_of(*run);
  Export result{*std::move(run),
                std::move(changes),
                {},
                planned.step_time,
                exported.point - planned.point,
                exported.step_time - planned.step_time};
  result.settings = written(framework, *told);
  return result;
}

std::vector<std::string> frameworks_for(const Plan& plan) {
  std::vector<std::string> names;
  for (const std::string& name : framework_names()) {
    const Result<Framework> framework = load_framework(name, "--to");
    if (framework && export_plan(plan, *framework)) names.push_back(name);
  }
  return names;
}

std::optional<std::string> take_missing_router(Plan& plan) {
  ModelSpec& model = plan.model;
  if (model.num_experts == 0 || model.router != RouterNumerics()) return std::nullopt;
  const std::vector<std::string> names = catalogue_names("models");
  if (std::ranges::find(names, model.name) == names.end()) return std::nullopt;
  const Result<ModelSpec> known = load_model(model.name);
  if (!known || known->router == model.router) return std::nullopt;
  if (facts_without_router(*known) != facts_without_router(model)) return std::nullopt;
  model.router = known->router;
  return fmt::format(
      "the plan does not say how its router weighs experts: it is that of {} in the catalogue",
      shown(model.name));
}

}  // namespace shardwise
