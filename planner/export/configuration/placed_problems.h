#pragma once

#include <string>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Problems of flags, at the setting that states the field. Beside one of those, problems of fields
/// that neither a setting nor a flag states follow from it and are left out.
/// \param stated  by flags
Diagnostics placed(Diagnostics problems, const Framework& framework, const Settings& settings,
                   const std::string& file, const Texts& stated);

}  // namespace shardwise
