#pragma once

#include <string>
#include <vector>

#include "planner/spec/model_spec.h"
#include "planner/spec/report.h"
#include "planner/spec/report_json.h"

namespace shardwise::cli {

/// "46.7 B parameters, 12.9 B active"; the second where experts make it another number.
std::string parameters_words(const ModelSpec& model);

/// The same for --json.
ReportedParameters reported_parameters(const ModelSpec& model);

/// States what was taken for the keys that a model's configuration lacks; empty where it lacks
/// none.
std::vector<Assumption> absent_keys_assumption(const ModelSpec& model,
                                               const std::vector<std::string>& absent_keys);

}  // namespace shardwise::cli
