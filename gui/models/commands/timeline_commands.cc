#include "gui/models/commands/command_groups.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "planner/spec/text/number.h"

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
  const StepLanes* const lanes = session.state().shown_step();
  if (!problem.empty() || lanes == nullptr) return problem;
  session.set_range(zoomed(session.state().range, factor, share, lanes->length));
  return "";
}

std::string pan(Session& session, const std::string& argument) {
  constexpr double kMostWidths = 1e6;
  double share = 0;
  std::string problem = read_number(argument, -kMostWidths, kMostWidths, share);
  const StepLanes* const lanes = session.state().shown_step();
  if (!problem.empty() || lanes == nullptr) return problem;
  session.set_range(panned(session.state().range, share, lanes->length));
  return "";
}

/// "FROM TO" in seconds of the step that is shown.
std::string read_range(const Session& session, const std::string& argument, TimeRange& range) {
  constexpr double kMostSeconds = 1e9;
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) return "two times in seconds: 0.25 0.5";
  std::string problem = read_number(argument.substr(0, space), 0, kMostSeconds, range.from);
  if (problem.empty()) {
    problem = read_number(argument.substr(space + 1), 0, kMostSeconds, range.to);
  }
  if (!problem.empty()) return problem;
  if (range.to < range.from) std::swap(range.from, range.to);
  const StepLanes* const step = session.state().shown_step();
  if (step != nullptr) {
    range.from = std::min(range.from, step->length);
    range.to = std::min(range.to, step->length);
  }
  return "";
}

std::string show_part(Session& session, const std::string& argument) {
  TimeRange range;
  std::string problem = read_range(session, argument, range);
  const StepLanes* const step = session.state().shown_step();
  if (!problem.empty() || step == nullptr || range.length() <= 0) return problem;
  // Not closer than zooming allows.
  session.set_range(zoomed(range, 1, 0.5, step->length));
  return "";
}

std::string measure(Session& session, const std::string& argument) {
  if (argument.empty()) {
    session.timeline().measured.reset();
    return "";
  }
  TimeRange range;
  std::string problem = read_range(session, argument, range);
  if (problem.empty()) session.timeline().measured = range;
  return problem;
}

/// The chosen span or, where that is shown already, the whole step.
std::string fit_chosen_span(Session& session, const std::string&) {
  const StepLanes* const step = session.state().shown_step();
  if (step == nullptr) return "";
  const std::optional<ChosenSpan>& chosen = session.state().timeline.chosen;
  const Lane* const lane = chosen ? step->find(chosen->lane) : nullptr;
  const TimeRange whole{0, step->length};
  const TimeRange close =
      chosen && lane != nullptr ? focused(*lane, chosen->span, step->length) : whole;
  session.set_range(session.state().range == close ? whole : close);
  return "";
}

constexpr std::array kTimelineCommands = std::to_array<Command>({
    {"timeline.fit", "F", "Show the chosen span, or the whole step", "", fit_chosen_span},
    {"timeline.show", "", "Show a part of the step", "FROM TO", show_part},
    {"timeline.measure", "Ctrl+Shift+U", "Read out a part of the step", "[FROM TO]", measure},
    {"timeline.lanes", "L", "Show all streams, or those that are busy for a while", "",
     does<&Session::toggle_lanes>},
    {"timeline.closer", "W", "Zoom in at the middle", "",
     [](Session& session, const std::string&) { return zoom(session, "0.8 0.5"); }, nullptr, true},
    {"timeline.wider", "S", "Zoom out", "",
     [](Session& session, const std::string&) { return zoom(session, "1.25 0.5"); }, nullptr, true},
    {"timeline.earlier", "A", "Move to the left", "",
     [](Session& session, const std::string&) { return pan(session, "-0.15"); }, nullptr, true},
    {"timeline.later", "D", "Move to the right", "",
     [](Session& session, const std::string&) { return pan(session, "0.15"); }, nullptr, true},
    {"timeline.zoom", "", "Zoom by a factor at a share of the width", "FACTOR SHARE", zoom},
    {"timeline.pan", "", "Move by a share of what is shown", "SHARE", pan},
});

}  // namespace

std::span<const Command> timeline_commands() { return kTimelineCommands; }

}  // namespace shardwise::view
