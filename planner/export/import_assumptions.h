#pragma once

#include <cstdint>
#include <vector>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/export/import_plan.h"
#include "planner/question/subject.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// Who says the model of an imported plan.
enum class ModelBy : std::uint8_t { flag, configuration };

/// Assumptions of an imported plan beyond its configuration and the flags: fields that
/// neither says, arguments of the training script, settings that no plan has.
/// \param asked    with the facts of the configuration
/// \param subject  whose assumptions are the first
std::vector<Assumption> import_assumptions(const Framework& framework, const Settings& settings,
                                           const AskedImport& asked, const Subject& subject,
                                           const Plan& plan, ModelBy model_by);

}  // namespace shardwise
