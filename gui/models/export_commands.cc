#include "gui/models/command_groups.h"

#include <array>
#include <string>

namespace shardwise::view {
namespace {

constexpr std::array kCommands = std::to_array<Command>({
    {"export.png", "Ctrl+P", "Save the window as a picture", "FILE",
     [](Session& session, const std::string& argument) {
       if (argument.empty()) return std::string("name a file, as explore.png");
       session.request_png(argument);
       return std::string();
     }},
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
});

}  // namespace

std::span<const Command> export_commands() { return kCommands; }

}  // namespace shardwise::view
