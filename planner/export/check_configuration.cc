#include "planner/export/check_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/export/check_order.h"
#include "planner/export/check_recipe.h"
#include "planner/export/check_removed.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/import_plan.h"
#include "planner/export/rule_values.h"
#include "planner/export/unasked_rules.h"
#include "planner/spec/text/meant_flag.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Whether the arithmetic of a rule is broken: a product that is not what it should be, or does not
/// divide it. \returns false where a factor is not stated
bool product_is_wrong(const CheckRule& rule, const Values& values) {
  std::int64_t product = 1;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (const std::string& factor : rule.product) {
    const auto at = values.find(factor);
    const std::optional<std::int64_t> count =
        parse_integer(at == values.end() ? factor : at->second);
    if (!count || *count < 1 || *count > kMost / product) return false;
    product *= *count;
  }
  const auto at = values.find(rule.equals);
  const std::optional<std::int64_t> whole =
      at == values.end() ? std::nullopt : parse_integer(at->second);
  if (!whole) return false;
  return rule.divides ? *whole % product != 0 : *whole != product;
}

Diagnostic at_setting(const std::string& name, const Settings& settings,
                      const Configuration& configuration) {
  Diagnostic what;
  what.file = configuration.file;
  what.path = name;
  const auto given = settings.given.find(name);
  if (given == settings.given.end()) return what;
  what.file = given->second->file;
  what.line = given->second->line;
  what.column = given->second->column;
  what.path = given->second->path;
  return what;
}

/// The section of a key: "zero_optimization" of "zero_optimization.stage", "" at the top. Of
/// sections in one another it is the innermost whose unknown keys the framework refuses.
std::string section_of(const Framework& framework, const std::string& name) {
  const std::size_t dot = name.find('.');
  std::string section = dot == std::string::npos ? "" : name.substr(0, dot);
  for (const std::string& each : framework.sections) {
    if (each.size() > section.size() && name.starts_with(each + ".")) section = each;
  }
  return section;
}

/// Whether the framework knows the key itself, one above it or one below it.
/// \param closed  a section whose own name does not make its keys known; "" for none
bool is_known(const Framework& framework, const std::string& name, const std::string& closed) {
  const auto covers = [&](const std::string& key) {
    const bool closes = key == closed || closed.starts_with(key + ".");
    const bool above = name.starts_with(key + ".") && !closes;
    return key == name || above || key.starts_with(name + ".");
  };
  return std::ranges::any_of(framework.known_keys, covers) ||
         std::ranges::any_of(framework.settings,
                             [&](const SettingSpec& spec) { return covers(spec.name); });
}

/// The key of the section that ends with this one: "a.a_size" of "a.size".
std::optional<std::string> longer_key(const std::string& name, const std::string& section,
                                      const std::vector<std::string>& keys) {
  if (section.empty()) return std::nullopt;
  const std::string end = "_" + name.substr(name.rfind('.') + 1);
  const auto at = std::ranges::find_if(keys, [&](const std::string& key) {
    return key.starts_with(section + ".") && key.ends_with(end);
  });
  return at == keys.end() ? std::nullopt : std::optional(*at);
}

/// Whether the settings break the rule, which they do not where nobody knows.
bool is_broken(const Framework& framework, const CheckRule& rule, const Values& values,
               const Settings& settings) {
  if (!lacks_of(framework, rule, values, settings).empty()) return false;
  return holds(rule.when, values) && (rule.product.empty() || product_is_wrong(rule, values));
}

Finding finding_of(const CheckRule& rule, const Values& values, const Settings& settings,
                   const Configuration& configuration) {
  const bool elsewhere = !settings.given.contains(rule.at) && settings.given.contains(rule.or_at);
  const std::string& at = elsewhere ? rule.or_at : rule.at;
  Finding finding{rule.name, rule.kind, at_setting(at, settings, configuration), rule.source};
  const auto value = values.find(at);
  const bool shows = value != values.end() && value->second != "true";
  finding.what.message = shows ? shown(value->second) + ": " + rule.says : rule.says;
  finding.what.hint = rule.fix;
  return finding;
}

/// Values that the framework's parser does not take.
void find_wrong_values(const Framework& framework, const Settings& settings,
                       std::vector<Finding>& findings) {
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (given == settings.given.end()) continue;
    const std::string& value = settings.values.at(spec.name);
    const bool is_variable = value.find('$') != std::string::npos;  // that nobody knows here
    const auto other =
        spec.kind == SettingKind::texts ? Clause::Kind::beyond : Clause::Kind::is_not;
    const bool is_among = spec.among.empty() || is_variable ||
                          !holds({spec.name, other, spec.among}, settings.values);
    const std::optional<std::int64_t> number = parse_integer(value);
    const bool is_small = number && *number < spec.least && spec.open != value;
    if (is_among && !is_small) continue;
    const GivenSetting& place = *given->second;
    Finding finding;
    finding.rule = "unknown_value";
    finding.kind = CheckRule::Kind::refused;
    finding.source = spec.source;
    finding.what = {place.file,
                    place.line,
                    place.column,
                    place.path,
                    fmt::format("{} is none of its values", shown(value)),
                    is_small ? fmt::format("{} or more", spec.least)
                             : fmt::format("one of {}", fmt::join(spec.among, ", "))};
    findings.push_back(std::move(finding));
  }
}

/// Fields of which two settings state different values, where somebody refuses that.
void find_two_values(const Framework& framework, const Settings& settings,
                     std::vector<Finding>& findings) {
  if (framework.two_values_source.empty()) return;
  for (Diagnostic& each : two_values_of(framework, settings)) {
    Finding finding{"two_values", CheckRule::Kind::refused, std::move(each),
                    framework.two_values_source};
    finding.what.hint = "state it once, or the same in both";
    findings.push_back(std::move(finding));
  }
}

void find_unknown(const Framework& framework, const Settings& settings,
                  std::vector<Finding>& findings) {
  if (framework.known_keys.empty() && framework.form != ConfigurationForm::script) return;
  std::vector<std::string> keys = framework.known_keys;
  for (const SettingSpec& spec : framework.settings) keys.push_back(spec.name);
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<std::string> sections;  // unknown ones, which are said once with whatever is in them
  for (const GivenSetting* each : settings.unknown) {
    const bool is_key = each->path.starts_with('/');  // of a file, and no word of a command
    if (framework.takes_words() && !is_key && each->name.front() != '-') continue;
    const std::string own = table_name(framework, *each).name;
    const std::string section = section_of(framework, own);
    if (is_removed(framework, section.empty() ? own : section)) continue;
    const bool closed = std::ranges::find(framework.sections, section) != framework.sections.end();
    const auto& loose = framework.loose_sections;
    const bool all_known = closed || std::ranges::find(loose, section) != loose.end();
    // A key of a section that is not read here may be right; the section itself is known or not.
    const std::string name = all_known || section.empty() ? own : section;
    if (is_known(framework, name, all_known ? section : "")) continue;
    const bool top = section.empty() || name == section;
    const bool refused =
        closed || (is_key && framework.form == ConfigurationForm::overrides) ||
        (top && std::ranges::find(framework.sections, "") != framework.sections.end());
    if (!refused && !(top && framework.takes_unknown) && !all_known) continue;
    if (is_key && name == section) {
      if (std::ranges::find(sections, section) != sections.end()) continue;
      sections.push_back(section);
    }
    Finding finding;
    finding.rule = "unknown_key";
    finding.kind = refused ? CheckRule::Kind::refused : CheckRule::Kind::silent;
    const std::string& said = is_key ? name : own;  // a flag is one word with its section
    std::optional<std::string> near = nearest(said, keys);
    if (!near) near = nearest(name, keys);  // of a section that is not read here
    if (!near) near = longer_key(own, section, keys);
    const bool is_flag = said.starts_with('-');
    if (!near && is_flag) {
      const std::vector<std::string> meant = meant_flags(said, keys);
      if (!meant.empty()) near = fmt::format("{}", fmt::join(meant, " or "));
    }
    finding.what = {each->file,
                    each->line,
                    each->column,
                    each->path,
                    fmt::format("{} is no {} of {} {}", shown(said), is_flag ? "argument" : "key",
                                framework.label, framework.version),
                    near      ? fmt::format("did you mean {}?", *near)
                    : is_flag ? "leave it out, or run the script that adds it"
                              : "leave it out"};
    finding.source = framework.source_of(refused ? "unknown" : "silent");
    findings.push_back(std::move(finding));
  }
}

/// Flags of a command that the framework does not read, since one of them names a file of settings.
void find_ignored(const Framework& framework, const Settings& settings,
                  std::vector<Finding>& findings) {
  if (framework.file_flag.empty()) return;
  for (const GivenSetting* each : settings.of_script) {
    if (each->name == framework.file_flag) continue;
    const auto given = settings.given.find(table_name(framework, *each).name);
    std::string message =
        fmt::format("not read: {} names the file of all settings", framework.file_flag);
    if (given != settings.given.end()) {
      message += fmt::format(", and {} has {}", given->second->file,
                             shown(settings.values.at(given->first)));
    }
    Finding finding;
    finding.rule = "ignored_flag";
    finding.kind = CheckRule::Kind::changed;
    finding.source = framework.source_of("file");
    finding.what = {each->file, each->line,         each->column,
                    each->path, std::move(message), "state it in the file"};
    findings.push_back(std::move(finding));
  }
}

/// \param unread  settings whose values are wrong: rules that ask for them, or for what follows
/// from
///                several, are not asked
std::vector<Finding> found_in(const Framework& framework, const Configuration& configuration,
                              const Settings& settings, const Values& values,
                              const std::vector<std::string>& unread) {
  const auto is_open = [&](const std::string& name) {
    const bool follows = name.starts_with('@') && !unread.empty();
    return follows || std::ranges::find(unread, name) != unread.end();
  };
  std::vector<Finding> findings;
  for (const CheckRule& rule : framework.rules) {
    const bool asks = std::ranges::any_of(rule.when, is_open, &Clause::name) ||
                      std::ranges::any_of(rule.product, is_open) || is_open(rule.equals);
    if (asks || !is_broken(framework, rule, values, settings)) continue;
    findings.push_back(finding_of(rule, values, settings, configuration));
  }
  find_two_values(framework, settings, findings);
  find_wrong_values(framework, settings, findings);
  if (std::optional<Finding> wrong = wrong_recipe(framework, settings)) {
    findings.push_back(*std::move(wrong));
  }
  std::ranges::move(misplaced_words(framework, configuration), std::back_inserter(findings));
  std::ranges::move(unexpected_words(framework, configuration), std::back_inserter(findings));
  std::ranges::move(removed_keys(framework, settings), std::back_inserter(findings));
  std::ranges::move(removed_flags(framework, settings), std::back_inserter(findings));
  find_unknown(framework, settings, findings);
  find_ignored(framework, settings, findings);
  return findings;
}

/// Takes settings out that problems stand at. \returns their names
std::vector<std::string> take_out(const Diagnostics& problems, const Framework& framework,
                                  std::vector<GivenSetting>& settings) {
  std::vector<std::string> names;
  std::erase_if(settings, [&](const GivenSetting& each) {
    const bool is_wrong = std::ranges::any_of(problems, [&](const Diagnostic& problem) {
      return problem.file == each.file && problem.line == each.line &&
             problem.column == each.column && problem.path == each.path;
    });
    if (is_wrong) names.push_back(table_name(framework, each).name);
    return is_wrong;
  });
  return names;
}

/// Settings whose values are of a wrong kind, and what the framework refuses of the others.
Diagnostics with_other_problems(Diagnostics problems, const Framework& framework,
                                Configuration configuration, std::int64_t ranks,
                                const std::optional<ClusterSpec>& cluster) {
  std::vector<std::string> unread = take_out(problems, framework, configuration.settings);
  std::ranges::move(take_out(problems, framework, configuration.environment),
                    std::back_inserter(unread));
  const Result<Settings> others = settings_of(framework, configuration);
  if (unread.empty() || !others) return problems;
  if (ranks == 0) ranks = stated_ranks(framework, *others, configuration);
  const Values values = rule_values(framework, *others, ranks, cluster);
  for (Finding& each : found_in(framework, configuration, *others, values, unread)) {
    if (each.kind == CheckRule::Kind::refused) problems.push_back(std::move(each.what));
  }
  return problems;
}

}  // namespace

std::int64_t stated_ranks(const Framework& framework, const Settings& settings,
                          const Configuration& configuration) {
  if (configuration.ranks > 0) return configuration.ranks;
  for (const SettingSpec& spec : framework.settings) {
    if (spec.field != "gpus" || !settings.given.contains(spec.name)) continue;
    return parse_integer(settings.values.at(spec.name)).value_or(0);
  }
  return 0;
}

Result<std::vector<Finding>> check_configuration(const Framework& framework,
                                                 const Configuration& configuration,
                                                 std::int64_t ranks,
                                                 const std::optional<ClusterSpec>& cluster) {
  const Result<Settings> settings = settings_of(framework, configuration);
  if (!settings) {
    return with_other_problems(settings.problems(), framework, configuration, ranks, cluster);
  }
  const std::int64_t stated = stated_ranks(framework, *settings, configuration);
  if (ranks > 0 && stated > 0 && ranks != stated) {
    return flag_contradiction("gpus", std::to_string(ranks), std::to_string(stated),
                              configuration.file);
  }
  if (ranks == 0) ranks = stated;
  return found_in(framework, configuration, *settings,
                  rule_values(framework, *settings, ranks, cluster), {});
}

Diagnostics contradictions_of(const Framework& framework, const Configuration& configuration,
                              const Settings& settings, std::int64_t ranks) {
  const Values values = rule_values(framework, settings, ranks, std::nullopt);
  Diagnostics problems;
  for (const CheckRule& rule : framework.rules) {
    if (!rule.contradiction || !is_broken(framework, rule, values, settings)) continue;
    problems.push_back(finding_of(rule, values, settings, configuration).what);
  }
  for (Finding& each : removed_flags(framework, settings)) {
    problems.push_back(std::move(each.what));
  }
  return problems;
}

Diagnostics with_refused_values(Diagnostics problems, const Framework& framework,
                                const Settings& settings) {
  std::vector<Finding> wrong;
  find_wrong_values(framework, settings, wrong);
  for (Finding& each : wrong) {
    const bool is_said = std::ranges::any_of(problems, [&](const Diagnostic& problem) {
      return problem.file == each.what.file && problem.line == each.what.line &&
             problem.column == each.what.column && problem.path == each.what.path;
    });
    if (!is_said) problems.push_back(std::move(each.what));
  }
  return problems;
}

Finding refused_at(const std::string& source, const char* rule, const GivenSetting& place,
                   std::string message, std::string hint) {
  Finding finding;
  finding.rule = rule;
  finding.kind = CheckRule::Kind::refused;
  finding.source = source;
  finding.what = {place.file, place.line,         place.column,
                  place.path, std::move(message), std::move(hint)};
  return finding;
}

std::string kind_words(CheckRule::Kind kind, const Framework& framework) {
  switch (kind) {
    case CheckRule::Kind::refused:
      return fmt::format("refused by {}", framework.label);
    case CheckRule::Kind::changed:
      return fmt::format("changed by {}", framework.label);
    case CheckRule::Kind::silent:
      break;
  }
  return fmt::format("accepted by {} without a warning", framework.label);
}

}  // namespace shardwise
