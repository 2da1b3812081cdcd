#include "gui/models/commands/command_groups.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "gui/models/question/choices.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

std::string next_by(Session& session, const std::string&) {
  session.compare_by(next_of(kCompareByNames, session.state().compare.by));
  return "";
}

/// The row of that number; without one the next, from the first.
std::string look_at(Session& session, const std::string& argument) {
  const CompareState& compare = session.state().compare;
  if (argument.empty()) {
    const bool looked = !compare.looked_at.empty();
    const std::string problem = session.look_at(looked ? compare.row + 1 : 0);
    return looked && problem.ends_with("no such row") ? session.look_at(0) : problem;
  }
  constexpr std::int64_t kMostRows = 1'000'000'000;
  std::int64_t row = 0;
  const std::string problem = read_integer(argument, 1, kMostRows, row);
  return problem.empty() ? session.look_at(static_cast<std::size_t>(row - 1)) : "row: " + problem;
}

/// The whole other step under the plan's, or the same seconds again.
std::string fit_other_step(Session& session, const std::string&) {
  const CompareState& compare = session.state().compare;
  if (!compare.view) return "nothing is compared";
  if (compare.own) {
    session.compare_range(std::nullopt);
  } else if (compare.view->lanes.length > 0) {
    session.compare_range(OwnRange{0, compare.view->lanes.length});
  }
  return "";
}

/// "1.5 3": seconds of the other step.
std::string set_range(Session& session, const std::string& argument) {
  constexpr double kMost = 1e9;
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) return "two moments in seconds, as 0 1.5";
  OwnRange own;
  std::string problem = read_number(argument.substr(0, space), 0, kMost, own.from);
  if (problem.empty()) problem = read_number(argument.substr(space + 1), 0, kMost, own.to);
  if (!problem.empty()) return problem;
  if (own.length() <= 0) return "the second moment is not after the first";
  session.compare_range(own);
  return "";
}

constexpr std::array kFileCommands = std::to_array<Command>({
    {"file.open", "Ctrl+O", "Open a plan, report, trace, page, metrics, model or cluster", "FILE",
     with_file<&Session::open_file, "plan.json">},
    {"file.stop", "Shift+Esc", "Stop reading a file", "", does<&Session::stop_reading>},
    {"metrics.follow", "Ctrl+Shift+M", "Follow a run by its file of metrics", "FILE",
     with_file<&Session::follow, "steps.jsonl">},
    {"metrics.poll", "", "Read what the run has added", "", does<&Session::poll_metrics>},
    {"metrics.stop", "Ctrl+M", "Follow no run", "", does<&Session::follow_nothing>},
    {"compare.toggle", "C", "Lay what is compared over all views, or take it away", "",
     [](Session& session, const std::string&) {
       if (session.state().compare.other) {
         session.show_compared(!session.state().compare.shown);
       } else {
         session.open_palette("compare.open ");
       }
       return std::string();
     }},
    {"compare.open", "Ctrl+D", "Compare with a report, a trace or another plan", "FILE",
     with_file<&Session::open_compared, "measured.json">},
    {"compare.close", "Ctrl+Shift+D", "Compare with nothing", "",
     [](Session& session, const std::string&) {
       session.compare_with(nullptr);
       return std::string();
     }},
    {"compare.by", "Y", "List differences by part, by kind or by operation", "", next_by},
    {"compare.worst", "J", "Look at the largest difference, then at the next", "[ROW]", look_at},
    {"compare.fit", "Ctrl+F", "Draw all of the other step below the plan's, or the same seconds",
     "", fit_other_step},
    {"compare.range", "Ctrl+Shift+F", "Draw a part of the other step below all of the plan's",
     "FROM TO", set_range},
    {"compare.calibrate", "U", "Correct all predictions by the measured run", "",
     does<&Session::calibrate>},
});

}  // namespace

std::span<const Command> file_commands() { return kFileCommands; }

}  // namespace shardwise::view
