#include "planner/export/other_words.h"

#include <utility>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/export_plan.h"
#include "planner/export/facts/plan_facts.h"
#include "planner/export/import_plan.h"

namespace shardwise {

OtherWords::OtherWords(const Framework& framework, const Plan& plan) : framework_(framework) {
  if (framework.form != ConfigurationForm::arguments) return;
  known_ = model_facts(plan.model);
  known_["gpus"] = std::to_string(plan.cluster.gpus);
  Result<Values> told = told_settings(framework, facts_of(plan));
  if (!told) return;
  settings_ = *std::move(told);
  facts_ = facts_with(settings_);
}

Values OtherWords::facts_with(Values settings) const {
  Settings stated;
  stated.values = std::move(settings);
  add_defaults(framework_, stated.values);
  Diagnostics ignored;
  return facts_of(framework_, stated, known_, ignored);
}

bool OtherWords::say_it(const SettingSpec& spec, const std::string& value) const {
  if (spec.numeric_when && holds(*spec.numeric_when, known_)) {
    Values written = settings_;
    add_defaults(framework_, written);
    const auto at = written.find(spec.name);
    return at == written.end() || at->second != value;
  }
  // Of a model that has no such thing, and is written without it.
  if (spec.only_written && !spec.when.empty() && !holds(spec.when, known_)) return true;
  if (settings_.empty() || spec.only_read || spec.field.starts_with("model.")) return false;
  if (spec.place == SettingPlace::environment) return false;
  Values changed = settings_;
  add_defaults(framework_, changed);
  const auto [at, is_new] = changed.try_emplace(spec.name, value);
  if (!is_new && at->second == value) return false;
  // No word of a command turns a switch off.
  if (spec.kind == SettingKind::on && value != "true") return false;
  at->second = value;
  return facts_with(std::move(changed)) == facts_;
}

}  // namespace shardwise
