#include "planner/export/configuration/placed_problems.h"

#include <algorithm>

#include "planner/question/flags.h"

namespace shardwise {
namespace {

/// Where a setting stands that says the field of a flag.
const GivenSetting* place_of_flag(const std::string& flag, const Framework& framework,
                                  const Settings& settings) {
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (given != settings.given.end() && !spec.field.empty() && flag_of(spec.field) == flag) {
      return given->second;
    }
  }
  return nullptr;
}

/// Whether a flag states one of the fields.
bool is_flag_of(const std::string& flag, const Texts& stated) {
  return std::ranges::any_of(stated, [&](const auto& field) {
    return !field.second.empty() && flag_of(field.first) == flag;
  });
}

}  // namespace

Diagnostics placed(Diagnostics problems, const Framework& framework, const Settings& settings,
                   const std::string& file, const Texts& stated) {
  const auto is_open = [&](const Diagnostic& each) {
    return each.path.starts_with("--") && !is_flag_of(each.path, stated) &&
           place_of_flag(each.path, framework, settings) == nullptr;
  };
  if (!std::ranges::all_of(problems, is_open)) std::erase_if(problems, is_open);
  for (Diagnostic& each : problems) {
    const GivenSetting* place = place_of_flag(each.path, framework, settings);
    if (place != nullptr) {
      each.file = place->file;
      each.line = place->line;
      each.column = place->column;
      each.path = place->path;
    } else if (each.file == "command line" && !each.path.empty()) {
      each.file = file;
    }
  }
  return problems;
}

}  // namespace shardwise
