#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/export/export_plan.h"
#include "planner/export/framework/framework.h"

namespace shardwise {

/// The second and third line of each run.sh: by them an export knows what a former one wrote. Names
/// of files stand behind the latter, with blanks between.
inline constexpr std::string_view kExportedBy = "# Written by shardwise export: ";
inline constexpr std::string_view kExportedFiles = "# Files: ";

/// A file of an exported folder.
struct ExportedFile {
  std::string name;
  std::string text;
};

/// Sentences of an export for its reader: every substitution with its predicted
/// effect, and what the framework leaves to the training script. Lines for that script stand
/// indented behind the sentence.
std::vector<std::string> export_notes(const Export& made, const Framework& framework);

/// The names in the third line of our run.sh, as far as an export has files of such names; empty of
/// any other text.
std::vector<std::string> files_of_former(std::string_view run_script);

/// The files with which the framework runs the plan: its configuration, environment.sh, run.sh, the
/// notes where there are any, and for a framework without a program of its own a training script
/// and the model's configuration. Fails where the plan keeps what the framework cannot be told.
/// \param model_config  text of the model's config.json; "" where no script needs one
/// \param first_note    stands before the others; "" for none
Result<std::vector<ExportedFile>> export_folder(const Export& made, const Framework& framework,
                                                const std::string& model_config,
                                                const std::string& first_note = "");

}  // namespace shardwise
