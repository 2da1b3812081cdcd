#pragma once

#include <string_view>
#include <vector>

#include "cli/flags/job_flags.h"
#include "planner/files/output_place.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::cli {

/// The file that a flag names by path or by catalogue entry; no path when there is none.
NamedFile named_file(const char* flag, std::string_view kind, const std::string& name_or_path);
/// The files of the model and of the cluster.
std::vector<NamedFile> files_of(const AskedJob& flags);

/// Checks a verb's outputs before it works: none is an input, each is a file of its own. With
/// --json standard output is one of them. Leaves standard output to the file that is "-".
Diagnostics prepare_outputs(std::vector<NamedFile> outputs, const std::vector<NamedFile>& inputs,
                            bool json);

}  // namespace shardwise::cli
