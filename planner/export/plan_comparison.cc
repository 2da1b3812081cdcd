#include "planner/export/plan_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/export/export_plan.h"
#include "planner/export/told_change.h"
#include "planner/legality/legality.h"
#include "planner/search/search.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// Whether options of the choice have different values of the setting.
bool is_chosen(const Choice& choice, const std::string& setting) {
  const std::string* value = nullptr;
  for (const Option& option : choice.options) {
    const auto at = option.settings.find(setting);
    if (at == option.settings.end()) continue;
    if (value != nullptr && *value != at->second) return true;
    value = &at->second;
  }
  return false;
}

/// The first setting that says one of the fields. Of the first field, where the training script
/// decides and no setting says it, nothing is to blame in a file.
const GivenSetting* place_of_fields(const std::vector<std::string>& fields,
                                    const Framework& framework, const Settings& settings) {
  if (fields.empty()) return nullptr;
  const GivenSetting* said = given_of_field(framework, settings, fields.front());
  if (said != nullptr) return said;
  const auto& by_script = framework.by_script;
  if (std::ranges::find(by_script, fields.front(), &ScriptField::field) != by_script.end()) {
    return nullptr;
  }
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (given == settings.given.end()) continue;
    if (std::ranges::find(fields, spec.field) != fields.end()) return given->second;
    for (const Choice& choice : framework.choices) {
      if (!is_chosen(choice, spec.name)) continue;
      for (const Option& option : choice.options) {
        const bool says = std::ranges::any_of(option.plan, [&](const Clause& clause) {
          return std::ranges::find(fields, clause.name) != fields.end();
        });
        if (says && option.settings.contains(spec.name)) return given->second;
      }
    }
  }
  return nullptr;
}

void put_place(const GivenSetting* place, Finding& finding) {
  if (place == nullptr) return;
  finding.what.file = place->file;
  finding.what.line = place->line;
  finding.what.column = place->column;
  finding.what.path = place->path;
}

}  // namespace

std::string memory_words(Bytes change) {
  if (change.value() == 0) return "the same memory";
  const bool grows = change.value() > 0;
  return fmt::format("{} {} a GPU", format_bytes(grows ? change : Bytes(0) - change),
                     grows ? "more on" : "less on");
}

Evaluation evaluation_of(const Plan& plan) {
  return evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
}

bool PlanComparison::fits() const {
  return fit_of(own_, usable_memory(plan_.cluster, plan_.job, Bytes(0))) != Fit::does_not_fit;
}

Bytes PlanComparison::size_of(const Evaluation& evaluation) const {
  return fits() ? evaluation.point : evaluation.needed;
}

Finding PlanComparison::finding_of(const About& about) const {
  Finding finding;
  finding.rule = about.rule;
  finding.kind = CheckRule::Kind::silent;
  finding.what.message = about.says;
  finding.what.hint = about.fix;
  finding.source = fmt::format("predicted for {} on {} GPUs of {}", plan_.model.name,
                               plan_.layout.world(), plan_.cluster.name);
  return finding;
}

void PlanComparison::add(const About& about) {
  Finding finding = finding_of(about);
  put_place(place_of_fields(about.fields, framework_, settings_), finding);
  findings_.push_back(std::move(finding));
}

void PlanComparison::add_at(const std::string& setting, const About& about) {
  Finding finding = finding_of(about);
  finding.what.path = setting;
  const auto given = settings_.given.find(setting);
  put_place(given == settings_.given.end() ? nullptr : given->second, finding);
  findings_.push_back(std::move(finding));
}

bool PlanComparison::can_be_told(const Plan& changed) const {
  return told_as_it_is(framework_, changed).has_value();
}

std::string PlanComparison::fix_of(const About& about, const Plan& changed) const {
  const std::string settings = told_change(framework_, plan_, changed);
  return settings.empty() ? about.fix : fmt::format("{} ({})", about.fix, settings);
}

bool PlanComparison::add_if_faster(const Plan& changed, const About& about) {
  if (!check_plan(changed).empty() || !can_be_told(changed)) return false;
  const Evaluation other = evaluation_of(changed);
  const Bytes usable = usable_memory(plan_.cluster, plan_.job, Bytes(0));
  if (fit_of(other, usable) != Fit::fits) return false;
  const double saved = 1 - other.step_time / own_.step_time;
  if (saved < kWorthSaying) return false;
  About found = about;
  found.fix =
      fmt::format("{}: a step of {} instead of {} ({:.0f} % less), {}", fix_of(about, changed),
                  format_seconds(other.step_time), format_seconds(own_.step_time), saved * 100,
                  memory_words(size_of(other) - size_of(own_)));
  add(found);
  return true;
}

bool PlanComparison::add_if_smaller(const Plan& changed, const About& about) {
  if (!check_plan(changed).empty()) return false;
  const Evaluation other = evaluation_of(changed);
  const double saved = 1 - size_of(other) / size_of(own_);
  if (saved < kWorthSaying) return false;
  const double longer = other.step_time / own_.step_time - 1;
  About found = about;
  found.fix = fmt::format("{}: {} instead of {} on a GPU{} ({:.0f} % less), the step {:.1f} % {}",
                          fix_of(about, changed), format_bytes(size_of(other)),
                          format_bytes(size_of(own_)), fits() ? " with what is cached" : "",
                          saved * 100, std::abs(longer) * 100, longer < 0 ? "shorter" : "longer");
  add(found);
  return true;
}

}  // namespace shardwise
