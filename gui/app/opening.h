#pragma once

#include <string>

#include "gui/app/options.h"
#include "planner/files/output_place.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// Begin of a window or a picture.
struct Opening {
  Plan plan;
  std::string file;      // that it is in; empty: none
  std::string compared;  // a file; empty: none
  std::string metrics;   // the same
  std::string note;      // what to say of the plan
  bool start = false;    // nobody named the plan: people choose another
};

/// Reads the plan that the options name: a file, the names of a model and a cluster, or their
/// files; of a report alone, the plan that it is of. Other files are told by what is in them, and
/// are read later. \returns it, or everything wrong with the plan or the names
Result<Opening> open_plan(const Options& options);

/// The files that the options name, so that no picture is written over one.
std::vector<NamedFile> inputs_of(const Options& options);

}  // namespace shardwise::view
