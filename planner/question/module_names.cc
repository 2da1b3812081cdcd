#include "planner/question/module_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/cost/layer/recompute_modules.h"
#include "planner/question/flags.h"

namespace shardwise {

bool names_modules(std::map<std::string, std::string>& texts) {
  const auto found = texts.find(kModulesField);
  if (found == texts.end()) return false;
  const std::string modules = found->second;
  texts.erase(found);
  if (modules.empty()) return false;
  std::string& operations = texts["recompute_operations"];
  const bool alone = operations.empty();
  operations += (alone ? "" : ",") + modules;
  return alone;
}

void name_modules_flag(Diagnostics& problems) {
  for (Diagnostic& each : problems) {
    if (each.path != "--recompute-operations") continue;
    each.path = "--recompute-modules";
    each.hint = fmt::format("modules are {}", fmt::join(recompute_modules(), ", "));
  }
}

void expand_modules(Subject& subject, Diagnostics& problems) {
  std::vector<std::string> expanded;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(expanded, name) == expanded.end()) expanded.push_back(name);
  };
  for (const std::string& name : subject.job.recompute_operations) {
    if (name == "core_attn") {
      subject.recompute_core_attention = true;
      continue;
    }
    if (std::ranges::find(recompute_modules(), name) == recompute_modules().end()) {
      add(name);
      continue;
    }
    const std::vector<std::string> operations = operations_of_module(subject.model, name);
    for (const std::string& operation : operations) add(operation);
    if (!operations.empty()) continue;
    std::vector<std::string> present = recompute_modules();
    std::erase_if(present, [&](const std::string& module) {
      return module != "core_attn" && operations_of_module(subject.model, module).empty();
    });
    problems.push_back(wrong_flag("--recompute-modules",
                                  fmt::format("{} has no {}", subject.model.name, name),
                                  fmt::format("it has {}", fmt::join(present, ", "))));
  }
  subject.job.recompute_operations = std::move(expanded);
}

}  // namespace shardwise
