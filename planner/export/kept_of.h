#pragma once

#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/kept_settings.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Settings that a configuration states and no plan has: settings that the table does not know,
/// those it knows that say nothing of a plan, and flags that say what the plan has in words that
/// export would not choose. Megatron-LM's keys become the flags that they are. "auto" of a setting
/// that the plan decides is not kept. \pre settings are those of the configuration, the plan is
/// what they say \returns them, or every name that no file of the framework can have
Result<KeptSettings> kept_of(const Framework& framework, const Configuration& configuration,
                             const Settings& settings, const Plan& plan);

/// The setting of the table that the plan decides and that a kept one of this name would state too;
/// null for none.
const SettingSpec* decided_setting(const Framework& framework, const std::string& name);

/// The kept settings of a plan that export to the framework would not write: of another form, or
/// such that the plan decides otherwise. \returns problems of /kept/settings/N/name
Diagnostics check_kept(const Framework& framework, const Plan& plan);

}  // namespace shardwise
