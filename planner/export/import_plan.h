#pragma once

#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Facts of the flags beside a configuration, of which it depends how many micro-batches a step has
/// where it does not say: no fact of the configuration has these names.
inline constexpr const char* kFlagBatch = "flag.global_batch_size";
inline constexpr const char* kFlagMicroBatch = "flag.micro_batch_size";

/// Facts that a configuration states of a plan, by the names of facts_of(): of the first option of
/// each choice that holds, of each setting with a field, and of what the framework does in one way
/// only. Facts that none of them states are absent. \param known     facts that hold whatever the
/// configuration says: model_facts(), gpus \param problems  takes values that no plan has
Values facts_of(const Framework& framework, const Settings& settings, Values known,
                Diagnostics& problems);

/// Settings that state another value of a field than one before them, at their places.
Diagnostics two_values_of(const Framework& framework, const Settings& settings);

/// Problem of a flag that says another value than a file.
Diagnostic flag_contradiction(const std::string& field, const std::string& text,
                              const std::string& value, const std::string& file);

/// Answers to what a configuration leaves open, as flags of the command have it.
struct AskedImport {
  AskedJob job;  // without a model: the one of the catalogue that the settings describe
  AskedLayout layout;
};

/// A configuration as a plan.
struct Import {
  Plan plan;  // with the settings that it does not have in `kept`
  std::vector<Assumption> assumptions;
};

/// Reads the plan that a configuration runs. Problems: values that contradict the model, the flags
/// or each other, and layouts that are not legal, at the place of the setting that states them.
Result<Import> import_plan(const Framework& framework, const Configuration& configuration,
                           AskedImport asked);

}  // namespace shardwise
