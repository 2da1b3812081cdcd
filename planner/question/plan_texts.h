#pragma once

#include <map>
#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Fields by name, each as its flag takes it: "tp" is "8", a switch "true" or "false".
using Texts = std::map<std::string, std::string>;

/// Every field of a job, or of a layout.
Texts texts_of(const JobSpec& job);
Texts texts_of(const Layout& layout);

/// A value of a JSON text as a flag takes it: those of an array with "," between, "" for an object.
std::string text_of(const JsonValue& value);

/// The job's fields through the reader that plan.json goes through, so that names and limits are
/// the same. Fields that are not given have their defaults.
JobSpec job_of(const Texts& texts, Diagnostics& problems);

}  // namespace shardwise
