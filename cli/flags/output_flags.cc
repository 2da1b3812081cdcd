#include "cli/flags/output_flags.h"

#include <algorithm>

#include "planner/spec/json/catalogue.h"

namespace shardwise::cli {

NamedFile named_file(const char* flag, std::string_view kind, const std::string& name_or_path) {
  if (name_or_path.empty()) return {flag, ""};
  const Result<CatalogueFile> found = find_in_catalogue(kind, name_or_path);
  return {flag, found && found->exists ? found->path.string() : ""};
}

std::vector<NamedFile> files_of(const AskedJob& flags) {
  return {named_file("--model", "models", flags.model),
          named_file("--cluster", "clusters", flags.cluster)};
}

Diagnostics prepare_outputs(std::vector<NamedFile> outputs, const std::vector<NamedFile>& inputs,
                            bool json) {
  const bool some =
      std::ranges::any_of(outputs, [](const auto& file) { return !file.path.empty(); });
  if (!some) return {};
  if (json) outputs.insert(outputs.begin(), {"--json", "-"});
  Diagnostics problems = check_outputs(outputs, inputs);
  if (problems.empty() && !json) reserve_standard_output(outputs);
  return problems;
}

}  // namespace shardwise::cli
