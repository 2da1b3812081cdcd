#include "gui/models/commands/command_groups.h"

#include <array>
#include <cstddef>
#include <string>

#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

/// "explore.png", "explore.png 2".
std::string save_png(Session& session, const std::string& argument) {
  if (argument.empty()) return "name a file, as explore.png";
  constexpr double kLeast = 0.5;
  constexpr double kMost = 8;
  const std::size_t space = argument.rfind(' ');
  const std::string last = space == std::string::npos ? "" : argument.substr(space + 1);
  if (!parse_number(last)) {
    session.request_png(argument);
    return "";
  }
  double scale = 0;
  const std::string problem = read_number(last, kLeast, kMost, scale);
  if (!problem.empty()) return "scale: " + problem;
  session.request_png(argument.substr(0, space), scale);
  return "";
}

constexpr std::array kExportCommands = std::to_array<Command>({
    {"export.png", "Ctrl+P", "Save the window as a picture, at another scale too", "FILE [SCALE]",
     save_png},
    {"export.csv", "Ctrl+E", "Save the rows of the table", "FILE",
     with_file<&Session::save_csv, "layouts.csv">},
    {"export.plan", "Ctrl+S", "Save the selected layout as a plan", "FILE",
     with_file<&Session::save_plan, "plan.json">},
    {"export.report", "Ctrl+Shift+O", "Save the simulated step as report.json", "FILE",
     with_file<&Session::save_report, "report.json">},
    {"export.trace", "Ctrl+Shift+T", "Save the simulated step as a trace", "FILE",
     with_file<&Session::save_trace, "trace.json">},
    {"export.page", "Ctrl+Shift+H", "Save the page of shardwise report", "FILE",
     with_file<&Session::save_page, "report.html">},
    {"export.command", "Ctrl+Shift+C", "Copy the command that says the same of the selection",
     "[FILE]", with_words<&Session::copy_command>},
    {"export.json", "Ctrl+Shift+J", "Copy the selected layout as JSON", "[FILE]",
     with_words<&Session::copy_json>},
});

}  // namespace

std::span<const Command> export_commands() { return kExportCommands; }

}  // namespace shardwise::view
