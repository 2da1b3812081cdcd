#include "planner/export/check_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// "llama3" of "torchtitan.models.llama3": where the framework has its modules.
std::string short_name(const Framework& framework, const std::string& module) {
  for (const char* folder : {".models.", ".experiments."}) {
    const std::string prefix = framework.package + folder;
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  }
  return module;
}

constexpr const char* kUnknown = "unknown_recipe";

}  // namespace

std::optional<Finding> wrong_recipe(const Framework& framework, const Settings& settings) {
  const Recipes& recipes = framework.recipes;
  const auto given = settings.given.find(recipes.module);
  if (given == settings.given.end()) return std::nullopt;
  const std::string module = short_name(framework, settings.values.at(recipes.module));
  std::vector<std::string> modules;
  std::vector<std::string> own;  // recipes of this module
  for (const auto& [of, recipe] : recipes.known) {
    modules.push_back(of);
    if (of == module) own.push_back(recipe);
  }
  if (own.empty()) {
    const std::optional<std::string> near = nearest(module, modules);
    if (!near) return std::nullopt;
    return refused_at(
        framework.source_of("module"), kUnknown, *given->second,
        fmt::format("{} is no module of {} {}", shown(module), framework.label, framework.version),
        fmt::format("did you mean {}?", *near));
  }
  const auto named = settings.given.find(recipes.recipe);
  if (named == settings.given.end() || own.front().empty()) return std::nullopt;
  const std::string& recipe = settings.values.at(recipes.recipe);
  if (std::ranges::find(own, recipe) != own.end()) return std::nullopt;
  const std::optional<std::string> near = nearest(recipe, own);
  return refused_at(framework.source_of("recipe"), kUnknown, *named->second,
                    fmt::format("{} is no recipe of {} in {} {}", shown(recipe), module,
                                framework.label, framework.version),
                    near ? fmt::format("did you mean {}?", *near)
                         : fmt::format("one of its config_registry.py, as {}", own.front()));
}

}  // namespace shardwise
