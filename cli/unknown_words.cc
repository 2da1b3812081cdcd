#include "cli/unknown_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>

#include "planner/command/unknown_words.h"
#include "planner/spec/text/meant_flag.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

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
    {"fit-check", "fits"},
    {"utilisation", "mfu"},
    {"utilization", "mfu"},
    {"diff", "compare"},
    {"html", "report"},
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
    {"curves", "fit"},
    {"fitting", "fit"},
};

/// `plan` searches every layout; a flag of a layout becomes a lock of it.
std::string as_lock(const KnownFlags& flags, std::string_view typed, std::string_view value) {
  if (std::ranges::find(flags.names, "--lock") == flags.names.end()) return "";
  return meant_lock(typed, value);
}

}  // namespace

std::vector<std::string> unknown_words(const CLI::App& app) {
  return shardwise::unknown_words(app, as_lock);
}

std::string missing_verb(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) return "no verb given (see shardwise --help)";
  if (words.front().starts_with('-')) {
    const std::vector<std::string> meant = meant_flags(words.front(), flags_of(app).names);
    return fmt::format(
        "unknown flag {} ({})", shown(words.front()),
        meant.empty() ? "see shardwise --help" : fmt::format("did you mean {}?", meant.front()));
  }
  if (words.front() == "calibrate") {  // what fit was called before
    return "unknown verb calibrate (fit fits curves to measurements, shardwise-run calibrate "
           "measures this machine)";
  }
  std::vector<std::string> verbs;
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
