#include "gui/models/command_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/number.h"

namespace shardwise::view {
namespace {

std::string select_row(Session& session, const std::string& argument) {
  const auto most = static_cast<std::int64_t>(session.state().shown.size());
  std::int64_t row = 0;
  const std::string problem = read_integer(argument, 1, std::max<std::int64_t>(1, most), row);
  if (!problem.empty()) return "row: " + problem;
  if (most == 0) return "no rows are shown";
  session.select_row(session.state().shown[static_cast<std::size_t>(row - 1)]);
  return "";
}

/// "tp 4": a slider to one of its values.
std::string set_slider(Session& session, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  const std::string id = argument.substr(0, space);
  std::vector<std::string> known;
  for (const SliderSection& section : session.state().sliders) {
    for (const Slider& slider : section.sliders) {
      known.push_back(slider.id);
      if (slider.id != id) continue;
      if (space == std::string::npos) return fmt::format("{} needs a value, as {} 4", id, id);
      const std::optional<std::int64_t> value = parse_integer(argument.substr(space + 1));
      const auto found = value ? std::ranges::find(slider.steps, *value) : slider.steps.end();
      if (found == slider.steps.end()) {
        return fmt::format("{}: use one of {}", id, fmt::join(slider.steps, ", "));
      }
      session.slide(id, static_cast<std::size_t>(found - slider.steps.begin()));
      return "";
    }
  }
  return fmt::format("{} is no field that can change here: {}", id.empty() ? "nothing" : id,
                     fmt::join(known, ", "));
}

constexpr std::array kCommands = std::to_array<Command>({
    {"question.undo", "Ctrl+Z", "Undo the last change", "",
     [](Session& session, const std::string&) {
       session.undo();
       return std::string();
     }},
    {"question.redo", "Ctrl+Shift+Z", "Make it again", "",
     [](Session& session, const std::string&) {
       session.redo();
       return std::string();
     }},
    {"question.set", "E", "Change a field of the mesh, the job or the cluster", "FIELD VALUE",
     set_slider},
    {"layout.next", "DownArrow", "Select the next layout", "",
     [](Session& session, const std::string&) {
       session.move_selection(1);
       return std::string();
     }},
    {"layout.previous", "UpArrow", "Select the layout before", "",
     [](Session& session, const std::string&) {
       session.move_selection(-1);
       return std::string();
     }},
    {"layout.best", "Home", "Select the first layout of the table", "",
     [](Session& session, const std::string&) { return select_row(session, "1"); }},
    {"layout.select", "G", "Select a row of the table by its number", "ROW", select_row},
    {"layout.neighbour", "N", "Take a neighbour by its place", "PLACE",
     [](Session& session, const std::string& argument) {
       const auto most = static_cast<std::int64_t>(session.state().neighbours.size());
       std::int64_t place = 0;
       const std::string problem =
           read_integer(argument, 1, std::max<std::int64_t>(1, most), place);
       if (!problem.empty()) return "place: " + problem;
       session.take_neighbour(static_cast<std::size_t>(place - 1));
       return std::string();
     }},
});

}  // namespace

std::span<const Command> question_commands() { return kCommands; }

}  // namespace shardwise::view
