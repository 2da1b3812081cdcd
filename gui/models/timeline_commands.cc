#include "gui/models/command_groups.h"

#include <array>
#include <string>

#include "planner/spec/number.h"

namespace shardwise::view {
namespace {

std::string zoom(Session& session, const std::string& argument) {
  constexpr double kMostFactor = 1e6;
  const std::size_t space = argument.find(' ');
  double factor = 1;
  double share = 0.5;
  std::string problem =
      read_number(argument.substr(0, space), 1 / kMostFactor, kMostFactor, factor);
  if (problem.empty() && space != std::string::npos) {
    problem = read_number(argument.substr(space + 1), 0, 1, share);
  }
  const StepLanes* const lanes = session.state().lanes.get();
  if (!problem.empty() || lanes == nullptr) return problem;
  session.set_range(zoomed(session.state().range, factor, share, lanes->length));
  return "";
}

std::string pan(Session& session, const std::string& argument) {
  constexpr double kMostWidths = 1e6;
  double share = 0;
  std::string problem = read_number(argument, -kMostWidths, kMostWidths, share);
  const StepLanes* const lanes = session.state().lanes.get();
  if (!problem.empty() || lanes == nullptr) return problem;
  session.set_range(panned(session.state().range, share, lanes->length));
  return "";
}

constexpr std::array kCommands = std::to_array<Command>({
    {"timeline.fit", "F", "Show the whole step", "",
     [](Session& session, const std::string&) {
       if (session.state().lanes) session.set_range({0, session.state().lanes->length});
       return std::string();
     }},
    {"timeline.lanes", "L", "Show all streams, or those that are busy for a while", "",
     [](Session& session, const std::string&) {
       session.toggle_lanes();
       return std::string();
     }},
    {"timeline.closer", "W", "Zoom in at the middle", "",
     [](Session& session, const std::string&) { return zoom(session, "0.8 0.5"); }},
    {"timeline.wider", "S", "Zoom out", "",
     [](Session& session, const std::string&) { return zoom(session, "1.25 0.5"); }},
    {"timeline.earlier", "A", "Move to the left", "",
     [](Session& session, const std::string&) { return pan(session, "-0.15"); }},
    {"timeline.later", "D", "Move to the right", "",
     [](Session& session, const std::string&) { return pan(session, "0.15"); }},
    {"timeline.zoom", "Z", "Zoom by a factor at a share of the width", "FACTOR SHARE", zoom},
    {"timeline.pan", "Shift+A", "Move by a share of what is shown", "SHARE", pan},
});

}  // namespace

std::span<const Command> timeline_commands() { return kCommands; }

}  // namespace shardwise::view
