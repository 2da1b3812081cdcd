#pragma once

#include <string>

#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report_json.h"

namespace shardwise {

/// "46.7 B parameters, 12.9 B active"; the second where experts make it another number.
std::string parameters_words(const ReportedParameters& counts);
std::string parameters_words(const ModelSpec& model);

/// Parameters as above, for --json.
ReportedParameters reported_parameters(const ModelSpec& model);

}  // namespace shardwise
