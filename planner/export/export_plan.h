#pragma once

#include <string>
#include <vector>

#include "planner/export/framework/framework.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// A setting and its value.
struct WrittenSetting {
  const SettingSpec* spec = nullptr;  // of the framework
  std::string value;
};

/// Something of a plan that a framework cannot be told, and what it does instead.
struct Substitution {
  std::string field;
  std::string from;
  std::string to;
  std::string because;
  Bytes memory_change;  // predicted, of the fullest GPU; with those before it already made
  Seconds time_change;  // of the step
  bool priced = false;  // if not, no plan is legal with it alone: a later one changes both for both
  std::vector<std::string> script = {};  // lines of a training script that make it needless
};

/// A plan as a framework is told it.
struct Export {
  Plan plan;  // as the framework runs it
  std::vector<Substitution> substitutions;
  std::vector<WrittenSetting> settings;  // of the configuration and of the environment
  Seconds planned_step;                  // predicted for the plan as it was given …
  Bytes memory_change;                   // … and what all substitutions change together
  Seconds time_change;
};

/// The settings that say a plan of these facts, with their defaults. \pre the framework's limits
/// hold
/// \param kept  of the plan: a recipe in it stands for the one that the table has for the model
/// \returns them, or every field that no setting says
Result<Values> told_settings(const Framework& framework, const Values& facts,
                             const KeptSettings& kept = {});

/// The settings by which a framework is told the plan as it is, without those that have their
/// default; nothing where it takes a substitution. \pre framework outlives the result
std::optional<std::vector<WrittenSetting>> told_as_it_is(const Framework& framework,
                                                         const Plan& plan);

/// Tells a framework a plan. Settings that have their default are left out, but where the file says
/// otherwise. \pre framework outlives the result
/// \returns it, or every reason why the framework cannot run such a plan
Result<Export> export_plan(const Plan& plan, const Framework& framework);

/// Gives a plan of a model with experts the router of the catalogue's model of its name and sizes,
/// where the plan has none: those written before there were routers in plans.
/// \returns what was taken, as a note; nothing where the plan stays as it is
std::optional<std::string> take_missing_router(Plan& plan);

/// The frameworks that can run a plan, with substitutions where these are needed.
std::vector<std::string> frameworks_for(const Plan& plan);

}  // namespace shardwise
