#include "cli/unknown_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "planner/spec/meant_flag.h"
#include "planner/spec/nearest.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/utf8.h"

namespace shardwise::cli {
namespace {

using Words = std::vector<std::string>;

/// Verbs by the names that people try first.
struct VerbName {
  std::string_view theirs;
  std::string_view ours;
};
constexpr VerbName kVerbNames[] = {
    {"search", "plan"},
    {"tune", "plan"},
    {"optimize", "plan"},
    {"optimise", "plan"},
    {"memory", "estimate"},
    {"calculate", "estimate"},
    {"predict", "estimate"},
    {"fits", "estimate"},
    {"diff", "compare"},
    {"train", "run"},
    {"execute", "run"},
    {"launch", "run"},
    {"cost", "size"},
    {"buy", "size"},
    {"sizing", "size"},
    {"models", "list models"},
    {"clusters", "list clusters"},
    {"engines", "list engines"},
    {"gpus", "list gpus"},
    {"ls", "list"},
    {"show", "list"},
    {"catalogue", "list"},
    {"validate", "score"},
    {"accuracy", "score"},
    {"usage", "--help"},
    {"version", "--version"},
    {"trace", "simulate --trace FILE"},
};

struct Flags {
  Words names;     // each with its dashes
  Words switches;  // those that take no value, or true and false
};

Flags flags_of(const CLI::App& verb) {
  Flags flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.names.push_back("--" + name);
      if (option->get_expected_min() == 0) flags.switches.push_back("--" + name);
    }
  }
  return flags;
}

bool is_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

bool is_flag(std::string_view word) { return word.starts_with('-') && !is_number(word); }

Words verbs_with(const CLI::App& app, const std::string& flag) {
  Words verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    const Words names = flags_of(*verb).names;
    if (std::ranges::find(names, flag) != names.end()) verbs.push_back(verb->get_name());
  }
  return verbs;
}

/// "a flag of estimate and simulate", "estimate and simulate have --tp"; empty when no verb has
/// anything near.
std::string in_other_verbs(const CLI::App& app, std::string_view typed) {
  Words all;
  for (const CLI::App* verb : app.get_subcommands({})) {
    const Words names = flags_of(*verb).names;
    all.insert(all.end(), names.begin(), names.end());
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  const Words meant = meant_flags(typed, all);
  if (meant.size() != 1) return "";
  const std::string flag = meant.front().substr(0, meant.front().find_first_of(" ="));
  Words verbs = verbs_with(app, flag);
  const std::string last = verbs.back();
  verbs.pop_back();
  const std::string list =
      verbs.empty() ? last : fmt::format("{} and {}", fmt::join(verbs, ", "), last);
  if (flag == "--" + bare_flag(typed)) return "a flag of " + list;
  return fmt::format("{} {} {}", list, verbs.empty() ? "has" : "have", meant.front());
}

/// `plan` searches every layout; a flag of a layout becomes a lock of it.
std::string as_lock(const Flags& flags, std::string_view typed, std::string_view value) {
  if (std::ranges::find(flags.names, "--lock") == flags.names.end()) return "";
  Words fields;
  for (const std::string& key : layout_keys()) {
    std::string field = "--" + key;
    std::ranges::replace(field, '_', '-');
    fields.push_back(std::move(field));
  }
  Words locks;
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

/// The value that belongs to the flag at `at`: "8" of "--tp 8" and of "--tp=8".
std::string value_at(const Words& words, std::size_t at) {
  if (const std::size_t equals = words[at].find('='); equals != std::string::npos) {
    return shown(words[at].substr(equals + 1));
  }
  return at + 1 < words.size() && !is_flag(words[at + 1]) ? shown(words[at + 1]) : "";
}

std::string unknown_flag(const CLI::App& app, const CLI::App& verb, const Words& words,
                         std::size_t at) {
  const std::string& typed = words[at];
  const Flags flags = flags_of(verb);
  const std::string flag = shown(typed.substr(0, typed.find('=')));
  const auto ask = [&](std::string_view meant) {
    return fmt::format("unknown flag {} (did you mean {}?)", flag, meant);
  };
  const Words meant = meant_flags(typed, flags.names, flags.switches);
  const std::string flag_here = fmt::format("{}", fmt::join(meant, " or "));
  // A flag of another verb is no slip of the pen for one of this verb.
  const bool elsewhere = !verbs_with(app, "--" + bare_flag(typed)).empty();
  const bool here = std::ranges::count(meant, "--" + bare_flag(typed)) > 0;
  if (!meant.empty() && (here || !elsewhere)) return ask(flag_here);
  const std::string lock = as_lock(flags, typed, value_at(words, at));
  if (!lock.empty()) return ask(lock);
  const std::string others = in_other_verbs(app, typed);
  return fmt::format("unknown flag {} ({})", flag,
                     others.empty() ? fmt::format("see {} --help", spoken_name(app)) : others);
}

}  // namespace

std::string spoken_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) name += " " + verb->get_name();
  return name;
}

std::vector<std::string> unknown_words(const CLI::App& app) {
  Words lines;
  if (app.get_subcommands().empty()) return lines;
  const Words before = app.remaining();
  if (!before.empty() && is_flag(before.front())) {
    lines.push_back(fmt::format("flag {} comes after the verb (see {} --help)",
                                shown(before.front()), spoken_name(app)));
    return lines;
  }
  const CLI::App& verb = *app.get_subcommands().front();
  const Words words = verb.remaining();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_flag(words[i])) lines.push_back(unknown_flag(app, verb, words, i));
  }
  if (lines.empty() && !words.empty()) {
    lines.push_back(
        fmt::format("unknown argument {} (see {} --help)", shown(words.front()), spoken_name(app)));
  }
  return lines;
}

std::string missing_verb(const CLI::App& app) {
  const Words words = app.remaining();
  if (words.empty()) return "no verb given (see shardwise --help)";
  if (words.front().starts_with('-')) {
    const Words meant = meant_flags(words.front(), flags_of(app).names);
    return fmt::format(
        "unknown flag {} ({})", shown(words.front()),
        meant.empty() ? "see shardwise --help" : fmt::format("did you mean {}?", meant.front()));
  }
  if (words.front() == "calibrate") {  // what fit was called before
    return "unknown verb calibrate (fit fits curves to measurements, shardwise-run calibrate "
           "measures this machine)";
  }
  Words verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  std::optional<std::string> near;
  for (const VerbName& name : kVerbNames) {
    if (name.theirs == words.front()) near = std::string(name.ours);
  }
  for (const std::string& verb : verbs) {
    if (!near && words.front().size() >= 2 && verb.starts_with(words.front())) near = verb;
  }
  if (!near) near = nearest(words.front(), verbs);
  return fmt::format("unknown verb {} ({})", shown(words.front()),
                     near ? fmt::format("did you mean {}?", *near) : "see shardwise --help");
}

}  // namespace shardwise::cli
