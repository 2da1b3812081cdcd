#include "planner/command/unknown_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstddef>

#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/meant_flag.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

using TypedWords = std::vector<std::string>;

bool is_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

bool is_flag(std::string_view word) { return word.starts_with('-') && !is_number(word); }

TypedWords verbs_with(const CLI::App& app, const std::string& flag) {
  TypedWords verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    const TypedWords names = flags_of(*verb).names;
    if (std::ranges::find(names, flag) != names.end()) verbs.push_back(verb->get_name());
  }
  return verbs;
}

/// "a flag of estimate and simulate", "estimate and simulate have --tp"; empty when no verb has
/// anything near.
std::string in_other_verbs(const CLI::App& app, std::string_view typed) {
  TypedWords all;
  for (const CLI::App* verb : app.get_subcommands({})) {
    const TypedWords names = flags_of(*verb).names;
    all.insert(all.end(), names.begin(), names.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const TypedWords meant = meant_flags(typed, all);
  if (meant.size() != 1) return "";
  const std::string flag = meant.front().substr(0, meant.front().find_first_of(" ="));
  TypedWords verbs = verbs_with(app, flag);
  const std::string last = verbs.back();
  verbs.pop_back();
  const std::string list =
      verbs.empty() ? last : fmt::format("{} and {}", fmt::join(verbs, ", "), last);
  if (flag == "--" + bare_flag(typed)) return "a flag of " + list;
  return fmt::format("{} {} {}", list, verbs.empty() ? "has" : "have", meant.front());
}

/// The value that belongs to the flag at `at`: "8" of "--tp 8" and of "--tp=8".
std::string flag_value(const TypedWords& words, std::size_t at) {
  if (const std::size_t equals = words[at].find('='); equals != std::string::npos) {
    return shown(words[at].substr(equals + 1));
  }
  return at + 1 < words.size() && !is_flag(words[at + 1]) ? shown(words[at + 1]) : "";
}

std::string unknown_flag(const CLI::App& app, const CLI::App& verb, const TypedWords& words,
                         std::size_t at, const ElsewhereMeant& elsewhere_meant) {
  const std::string& typed = words[at];
  const KnownFlags flags = flags_of(verb);
  const std::string flag = shown(typed.substr(0, typed.find('=')));
  const auto ask = [&](std::string_view meant) {
    return fmt::format("unknown flag {} (did you mean {}?)", flag, meant);
  };
  const TypedWords meant = meant_flags(typed, flags.names, flags.switches);
  const std::string flag_here = fmt::format("{}", fmt::join(meant, " or "));
  // A flag of another verb is no slip of the pen for one of this verb.
  const bool elsewhere = !verbs_with(app, "--" + bare_flag(typed)).empty();
  const bool here = std::ranges::count(meant, "--" + bare_flag(typed)) > 0;
  if (!meant.empty() && (here || !elsewhere)) return ask(flag_here);
  const std::string another =
      elsewhere_meant ? elsewhere_meant(flags, typed, flag_value(words, at)) : "";
  if (!another.empty()) return ask(another);
  const std::string others = in_other_verbs(app, typed);
  return fmt::format("unknown flag {} ({})", flag,
                     others.empty() ? fmt::format("see {} --help", spoken_name(app)) : others);
}

}  // namespace

std::string meant_lock(std::string_view typed, std::string_view value) {
  TypedWords fields;
  for (const std::string& key : layout_keys()) {
    std::string field = "--" + key;
    std::ranges::replace(field, '_', '-');
    fields.push_back(std::move(field));
  }
  TypedWords locks;
  for (const std::string& meant : meant_flags(typed, fields)) {
    const std::size_t end = std::min(meant.find(' '), meant.size());
    std::string field = meant.substr(2, end - 2);
    std::ranges::replace(field, '-', '_');
    const std::string_view given =
        end < meant.size() ? std::string_view(meant).substr(end + 1) : value;
    locks.push_back(fmt::format("--lock {}={}", field, given.empty() ? "VALUE" : given));
  }
  return fmt::format("{}", fmt::join(locks, " or "));
}

KnownFlags flags_of(const CLI::App& verb) {
  KnownFlags flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.names.push_back("--" + name);
      if (option->get_expected_min() == 0) flags.switches.push_back("--" + name);
    }
  }
  return flags;
}

std::string spoken_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) name += " " + verb->get_name();
  return name;
}

std::vector<std::string> unknown_words(const CLI::App& app, const ElsewhereMeant& elsewhere_meant) {
  TypedWords lines;
  if (app.get_subcommands().empty()) return lines;
  const TypedWords before = app.remaining();
  if (!before.empty() && is_flag(before.front())) {
    lines.push_back(fmt::format("flag {} comes after the verb (see {} --help)",
                                shown(before.front()), spoken_name(app)));
    return lines;
  }
  const CLI::App& verb = *app.get_subcommands().front();
  TypedWords words = verb.remaining();
  const auto dashes = std::ranges::find(words, "--");
  const auto behind = dashes - words.begin();  // are no flags
  if (dashes != words.end()) words.erase(dashes);
  for (std::size_t i = 0; i < static_cast<std::size_t>(behind); ++i) {
    if (is_flag(words[i])) lines.push_back(unknown_flag(app, verb, words, i, elsewhere_meant));
  }
  if (lines.empty() && !words.empty()) {
    lines.push_back(
        fmt::format("unknown argument {} (see {} --help)", shown(words.front()), spoken_name(app)));
  }
  return lines;
}

}  // namespace shardwise
