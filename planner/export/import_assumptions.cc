#include "planner/export/import_assumptions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>

#include "planner/export/absent_settings.h"
#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/recipe.h"
#include "planner/export/kept_of.h"
#include "planner/question/flags.h"
#include "planner/question/module_names.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Fields that change what a plan costs and that a configuration may leave open. Those of kernels
/// have assumptions of their own (usual_kernels_assumptions).
std::vector<std::string> open_fields(const Framework& framework) {
  std::vector<std::string> fields = {"sequence_length", "micro_batch_size", "global_batch_size",
                                     "precision", "recompute"};
  for (const ScriptField& each : framework.by_script) {
    const bool has_its_own = each.field == "loss" || each.field == "rms_norm" ||
                             each.field == "adamw" || each.field == "frozen_base";
    if (!has_its_own && std::ranges::find(fields, each.field) == fields.end()) {
      fields.push_back(each.field);
    }
  }
  return fields;
}

bool is_stated(const Texts& texts, const std::string& field) {
  const auto at = texts.find(field);
  return at != texts.end() && !at->second.empty();
}

/// The flags that would state what nothing states, with the values that were taken.
std::optional<Assumption> open_assumption(const Framework& framework, const AskedImport& asked,
                                          const Subject& subject, const Plan& plan) {
  std::vector<std::string> flags;
  const bool sized = !asked.job.gpus.empty() || is_stated(asked.layout.texts, "dp_shard");
  const bool says_gpus =
      std::ranges::find(subject.assumptions, "gpus", &Assumption::id) != subject.assumptions.end();
  if (!sized && !says_gpus) flags.push_back(fmt::format("--gpus {}", plan.layout.world()));
  const Texts job = texts_of(plan.job);
  const Texts layout = texts_of(plan.layout);
  const bool one = plan.job.microbatches(plan.layout.dp(), plan.layout.micro_batch_size) == 1;
  for (const std::string& field : open_fields(framework)) {
    if (one && field == "reduce_every_microbatch") continue;
    if (is_stated(asked.job.texts, field) || is_stated(asked.layout.texts, field)) continue;
    // Modules say what is recomputed.
    if (field == "recompute" && is_stated(asked.job.texts, kModulesField)) continue;
    const auto in_job = job.find(field);
    const auto in_layout = layout.find(field);
    const bool known = in_job != job.end() || in_layout != layout.end();
    if (!known) continue;
    const std::string& value = in_job != job.end() ? in_job->second : in_layout->second;
    flags.push_back(fmt::format(
        "{} {}{}", flag_of(field), value,
        field == "global_batch_size" ? ", a micro-batch for each data-parallel rank" : ""));
  }
  if (flags.empty()) return std::nullopt;
  return Assumption{
      "import.open",
      fmt::format("neither the configuration nor a flag says: {}", fmt::join(flags, "; ")),
      "docs/frameworks.md, Import"};
}

/// What "auto" leaves to the plan, which export states.
std::optional<Assumption> auto_assumption(const Framework& framework, const Settings& settings) {
  std::vector<std::string> names;
  for (const GivenSetting* each : settings.unknown) {
    const std::string own = table_name(framework, each->name).name;
    const bool open = std::ranges::find(settings.open, own) != settings.open.end();
    if (open && decided_setting(framework, each->name) != nullptr) names.push_back(own);
  }
  if (names.empty()) return std::nullopt;
  return Assumption{"import.auto",
                    fmt::format("\"auto\" is open, and export writes the plan's value: {}",
                                fmt::join(names, ", ")),
                    "docs/frameworks.md, Import"};
}

/// "a, b and more".
std::string names_of(const std::vector<const GivenSetting*>& settings) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> names;
  for (const GivenSetting* each : settings) {
    if (names.size() < kMost) names.push_back(shown(each->name));
  }
  const bool more = settings.size() > kMost;
  return fmt::format("{}{}", fmt::join(names, ", "), more ? " and more" : "");
}

/// What is true of all of the settings, if there is one.
std::optional<Assumption> assumption_of(const std::string& id, const std::string& says,
                                        const std::vector<const GivenSetting*>& settings) {
  if (settings.empty()) return std::nullopt;
  return Assumption{id, fmt::format("{}: {}", says, names_of(settings)),
                    "docs/frameworks.md, Import"};
}

std::optional<Assumption> script_assumption(const Framework& framework, const Settings& settings) {
  return assumption_of(
      "import.script_arguments",
      fmt::format("arguments of the training script change nothing that the file of {} says",
                  framework.label),
      settings.of_script);
}

std::optional<Assumption> file_assumption(const Framework& framework, const Settings& settings) {
  return assumption_of(
      "import.keys_without_flags",
      fmt::format("neither in the plan nor kept, since no flag of {} says the same",
                  framework.label),
      settings.of_file);
}

/// Flags that stand twice, of which programs read the last.
std::optional<Assumption> repeated_assumption(const Settings& settings) {
  std::vector<std::string> flags;
  for (const GivenSetting* each : settings.again) {
    flags.push_back(shown(fmt::format("{} {}", each->name, fmt::join(each->words, " "))));
  }
  if (flags.empty()) return std::nullopt;
  return Assumption{
      "import.twice",
      fmt::format("of flags that stand twice the last counts: {}", fmt::join(flags, ", ")),
      "docs/frameworks.md, Import"};
}

/// A recipe whose values are not in the table.
std::optional<Assumption> recipe_assumption(const Framework& framework, const Settings& settings,
                                            const Plan& plan, ModelBy model_by) {
  if (!is_other_recipe(framework, settings.values)) return std::nullopt;
  const auto recipe = settings.values.find(framework.recipes.recipe);
  if (recipe == settings.values.end()) return std::nullopt;
  const bool known = knows_recipe(framework, settings.values);
  const bool is_its_own = trained_model(framework, settings.values) == plan.model.name &&
                          is_of_module(framework, settings.values);
  if (known && is_its_own) return std::nullopt;
  return Assumption{
      "import.recipe",
      fmt::format(
          "{} is {} {}{}{}", shown(recipe->second),
          model_by == ModelBy::flag ? "a recipe for" : "taken for the recipe of that name for",
          plan.model.name, model_by == ModelBy::flag ? ", since --model says so" : "",
          known ? ""
                : fmt::format("; what it sets itself is not known: what the command leaves "
                              "open has the defaults of {}",
                              framework.label)),
      framework.source_of("recipe")};
}

/// What a configuration leaves to defaults that are not the model's.
std::optional<Assumption> absent_assumption(const Framework& framework, const Settings& settings,
                                            const Plan& plan) {
  std::vector<std::string> names;
  for (const AbsentSetting& each : absent_settings(framework, settings, plan.model)) {
    const bool is_switch = each.spec->kind == SettingKind::on;
    const bool is_on = is_switch && each.of_model == "true";
    names.push_back(is_on ? each.spec->name
                          : fmt::format("{} {}", each.spec->name, shown(each.of_model)));
  }
  if (names.empty()) return std::nullopt;
  return Assumption{
      "import.absent",
      fmt::format("the configuration does not state what {} has, and {} has another default: {}. "
                  "The plan is of {}, and export writes them",
                  plan.model.name, framework.label, fmt::join(names, ", "), plan.model.name),
      "docs/frameworks.md, Import"};
}

/// A number that is not the model's, and that the plan keeps.
std::optional<Assumption> numeric_assumption(const SettingSpec& spec, const std::string& value,
                                             const Plan& plan, const Values& facts) {
  const auto& kept = plan.kept.settings;
  const bool is_kept = std::ranges::find(kept, spec.name, &KeptSetting::name) != kept.end();
  if (!spec.numeric_when || !is_kept) return std::nullopt;
  const auto fact = facts.find(spec.field);
  const std::string other =
      fact == facts.end() ? "" : fmt::format(", where {} has {}", plan.model.name, fact->second);
  return Assumption{
      "import.numeric." + spec.name,
      fmt::format("{} {} is kept{}: the same memory and time", spec.name, shown(value), other),
      spec.source};
}

}  // namespace

std::vector<Assumption> import_assumptions(const Framework& framework, const Settings& settings,
                                           const AskedImport& asked, const Subject& subject,
                                           const Plan& plan, ModelBy model_by) {
  std::vector<Assumption> made = subject.assumptions;
  for (std::optional<Assumption> each :
       {open_assumption(framework, asked, subject, plan), auto_assumption(framework, settings),
        script_assumption(framework, settings), file_assumption(framework, settings),
        repeated_assumption(settings), recipe_assumption(framework, settings, plan, model_by),
        absent_assumption(framework, settings, plan)}) {
    if (each) made.push_back(*std::move(each));
  }
  const Values facts = facts_of(plan);
  Values values = settings.values;  // and by "@field" what the plan has
  for (const auto& [field, value] : facts) values["@" + field] = value;
  for (const SettingSpec& spec : framework.settings) {
    const auto at = settings.values.find(spec.name);
    if (at == settings.values.end()) continue;
    const std::string& value = at->second;
    if (auto numeric = numeric_assumption(spec, value, plan, facts)) {
      made.push_back(*std::move(numeric));
    }
    const std::string words =
        spec.kind == SettingKind::on ? spec.name : fmt::format("{} {}", spec.name, shown(value));
    const auto fact = facts.find(spec.field);
    const auto& kept = plan.kept.settings;
    if (spec.only_written && fact != facts.end() &&
        std::ranges::find(kept, spec.name, &KeptSetting::name) != kept.end()) {
      made.push_back({"import.only_written." + spec.name,
                      fmt::format("{} is kept, and not priced: the plan's {} is {}", words,
                                  spec.field, fact->second),
                      spec.source});
    }
    const bool is_given = settings.given.contains(spec.name) && value != spec.by_default;
    if (!spec.unpriced.empty() && is_given) {
      made.push_back({"import.unpriced." + spec.name,
                      fmt::format("{} is kept, and not priced: {}", words, spec.unpriced),
                      spec.source});
    }
    if (!spec.assumed.empty() && holds(spec.assumed_when, values)) {
      made.push_back(
          {"import.assumed." + spec.name, fmt::format("{}: {}", words, spec.assumed), spec.source});
    }
  }
  return made;
}

}  // namespace shardwise
