#pragma once

#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Words problems of flags for the file that has them as keys: `--micro-batch-size` is
/// /layout/micro_batch_size. Words that name flags name keys. Each problem, also one that has its
/// pointer already, gets its place in the file: of a key that is not there, that of its object.
/// \param root  of a plan or a report: flags are looked for in its layout, in its job, in itself
Diagnostics problems_in_file(Diagnostics problems, const JsonValue& root, const std::string& file);

/// Words them for a form, where somebody fills in fields: `--micro-batch-size` is
/// micro_batch_size. Problems of files stay as they are.
/// \param form  what stands where a problem of the command says "command line"
Diagnostics problems_in_form(Diagnostics problems, const std::string& form);

}  // namespace shardwise
