#include "gui/models/command_groups.h"

#include <array>
#include <cstddef>
#include <string>

#include "planner/spec/number.h"

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

constexpr std::array kCommands = std::to_array<Command>({
    {"export.png", "Ctrl+P", "Save the window as a picture, at another scale too", "FILE [SCALE]",
     save_png},
    {"export.csv", "Ctrl+E", "Save the rows of the table", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as layouts.csv");
       return session.save_csv(argument);
     }},
    {"export.plan", "Ctrl+S", "Save the selected layout as a plan", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as plan.json");
       return session.save_plan(argument);
     }},
    {"export.report", "Ctrl+Shift+O", "Save the simulated step as report.json", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as report.json");
       return session.save_report(argument);
     }},
    {"export.trace", "Ctrl+Shift+T", "Save the simulated step as a trace", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as trace.json");
       return session.save_trace(argument);
     }},
    {"export.page", "Ctrl+Shift+H", "Save the page of shardwise report", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as report.html");
       return session.save_page(argument);
     }},
    {"export.command", "Ctrl+Shift+C", "Copy the command that says the same of the selection",
     "[FILE]",
     [](Session& session, const std::string& file) { return session.copy_command(file); }},
    {"export.json", "Ctrl+Shift+J", "Copy the selected layout as JSON", "[FILE]",
     [](Session& session, const std::string& file) { return session.copy_json(file); }},
});

}  // namespace

std::span<const Command> export_commands() { return kCommands; }

}  // namespace shardwise::view
