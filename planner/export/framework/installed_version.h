#pragma once

#include <string>

#include "planner/export/framework/framework.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Note on the version of a framework that a job will run with: a sentence where it is newer
/// or older than the one that the facts were read from, nothing where it is that one.
/// \param installed  "0.20.0", "2.15.0+cu130": as pip lists it; empty: nobody said
/// \param flag       that stated it
/// \returns the sentence, or that this is no version
Result<std::string> version_note(const Framework& framework, const std::string& installed,
                                 const std::string& flag);

}  // namespace shardwise
