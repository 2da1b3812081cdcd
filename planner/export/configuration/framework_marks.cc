#include "planner/export/configuration/framework_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "planner/export/framework/framework_reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The key by which settings.json of our scripts says whose it is.
constexpr std::string_view kSaysFramework = "framework";

/// The name of a setting where it is one of the framework's form; nothing of others.
std::optional<std::string> name_in(const Framework& framework, const GivenSetting& setting) {
  if (!setting.value) return framework.takes_words() ? std::optional(setting.name) : std::nullopt;
  if (framework.form == ConfigurationForm::overrides) return std::nullopt;
  const bool flags = framework.form == ConfigurationForm::arguments;
  return flags ? flag_of_key(setting.name) : setting.name;
}

bool has_mark(const Framework& framework, const GivenSetting& setting, const std::string& mark) {
  const std::optional<std::string> own = name_in(framework, setting);
  if (!own || (*own != mark && !own->starts_with(mark + "."))) return false;
  return mark != kSaysFramework || setting.words == std::vector{framework.name};
}

/// Whether a setting says nothing of the framework, as scripts of any have one of its name: another
/// program than its own is started, and no other setting by which it is known is there.
bool is_of_any_script(const Framework& framework, const Configuration& configuration,
                      const std::string& mark) {
  const bool names_recipe = !mark.empty() && mark == framework.recipes.recipe;
  const std::string& program = configuration.program;
  if (!names_recipe || program.empty() || program.starts_with(framework.package)) return false;
  return std::ranges::none_of(framework.marks, [&](const std::string& other) {
    return other != mark &&
           std::ranges::any_of(configuration.settings, [&](const GivenSetting& each) {
             return has_mark(framework, each, other);
           });
  });
}

struct Other {
  Framework framework;
  std::string mark;  // by which it is known
};

/// The framework other than `own` by which most settings are known, but for names that files and
/// scripts of any may have.
std::optional<Other> other_framework(const Framework& own, const Configuration& configuration,
                                     const std::string& file) {
  constexpr std::array<std::string_view, 4> kShared = {"bf16", "fp16", "mixed_precision",
                                                       "--config"};
  std::optional<Other> best;
  std::size_t most = 0;
  for (const std::string& name : framework_names()) {
    const Result<Framework> framework = load_framework(name, "--from");
    if (!framework || name == own.name) continue;
    std::size_t count = 0;
    std::string first;
    for (const std::string& mark : framework->marks) {
      if (std::ranges::find(kShared, mark) != kShared.end()) continue;
      const bool has = std::ranges::any_of(configuration.settings, [&](const GivenSetting& each) {
        return (file.empty() || each.file == file) && has_mark(*framework, each, mark);
      });
      if (!has) continue;
      if (count++ == 0) first = mark;
    }
    if (count <= most) continue;
    most = count;
    best = Other{*framework, first};
  }
  return best;
}

/// Whether a word in one of two files names the other, as a script names the file that it hands on.
bool names_another(const Configuration& configuration, const std::string& one,
                   const std::string& two) {
  const auto last_part = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  return std::ranges::any_of(configuration.settings, [&](const GivenSetting& each) {
    const bool is_there = each.file == one || each.file == two;
    return is_there && std::ranges::any_of(each.words, [&](const std::string& word) {
             return last_part(word) == last_part(each.file == one ? two : one);
           });
  });
}

}  // namespace

std::size_t marks_of(const Framework& framework, const Configuration& configuration,
                     const std::string& file) {
  const auto count = std::ranges::count_if(framework.marks, [&](const std::string& mark) {
    const bool has = std::ranges::any_of(configuration.settings, [&](const GivenSetting& each) {
      return (file.empty() || each.file == file) && has_mark(framework, each, mark);
    });
    return has && !is_of_any_script(framework, configuration, mark);
  });
  return static_cast<std::size_t>(count);
}

std::optional<Diagnostic> named_wrongly(const Framework& named, const Configuration& configuration,
                                        const std::string& flag) {
  if (marks_of(named, configuration) > 0) return std::nullopt;
  const std::optional<Other> other = other_framework(named, configuration, "");
  if (!other) return std::nullopt;
  return Diagnostic{configuration.file,
                    configuration.file == "command line" ? 0 : 1,
                    0,
                    "",
                    fmt::format("is a configuration of {} ({}), and not of {}",
                                other->framework.label, shown(other->mark), named.label),
                    fmt::format("{} {}, or leave it out", flag, other->framework.name)};
}

Diagnostics files_of_others(const Framework& framework, const Configuration& configuration) {
  std::vector<std::string> files;
  for (const GivenSetting& each : configuration.settings) {
    if (std::ranges::find(files, each.file) == files.end()) files.push_back(each.file);
  }
  const auto own = std::ranges::find_if(
      files, [&](const std::string& file) { return marks_of(framework, configuration, file) > 0; });
  Diagnostics problems;
  if (own == files.end()) return problems;
  for (const std::string& file : files) {
    if (marks_of(framework, configuration, file) > 0) continue;
    if (names_another(configuration, *own, file)) continue;
    const std::optional<Other> other = other_framework(framework, configuration, file);
    if (!other) continue;
    problems.push_back(
        {file, 1, 0, "",
         fmt::format("is a configuration of {} ({}), and {} is one of {}", other->framework.label,
                     shown(other->mark), *own, framework.label),
         "give the files of one framework"});
  }
  return problems;
}

}  // namespace shardwise
