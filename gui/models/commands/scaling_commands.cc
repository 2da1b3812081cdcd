#include <array>
#include <cstdint>
#include <string>

#include "gui/models/commands/command_groups.h"
#include "gui/models/question/choices.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

std::string set_rows(Session& session, const std::string& word) {
  const auto rows = choose(kScalingRows, session.state().scaling.rows, word);
  if (!rows) return none_of(word, kScalingRows);
  session.set_scaling_rows(*rows);
  return "";
}

std::string set_scaling_colour(Session& session, const std::string& word) {
  const auto colour = choose(kScalingColours, session.state().scaling.colour, word);
  if (!colour) return none_of(word, kScalingColours);
  session.set_scaling_colour(*colour);
  return "";
}

/// "64", "64 8192".
std::string take(Session& session, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  std::int64_t gpus = 0;
  const std::string problem = read_integer(argument.substr(0, space), 1, kMostGpus, gpus);
  if (!problem.empty()) return "GPUs: " + problem;
  return session.take_scaling(gpus, space == std::string::npos ? "" : argument.substr(space + 1));
}

constexpr std::array kScalingCommands = std::to_array<Command>({
    {"scaling.take", "T", "Take the best layout on other GPUs, of a row of the map", "GPUS [ROW]",
     take},
    {"scaling.rows", "Shift+R", "Rows of the scaling map: sequence, batch or model", "[ROWS]",
     set_rows},
    {"scaling.colour", "Shift+C", "Colour of the scaling map: mfu, cost, headroom or tokens",
     "[COLOUR]", set_scaling_colour},
    {"scaling.pause", "", "Stop filling the scaling map, or go on", "",
     [](Session& session, const std::string&) {
       session.pause_scaling(!session.state().scaling.paused);
       return std::string();
     }},
    {"scaling.csv", "Ctrl+Shift+E", "Save the scaling map as a table", "FILE",
     with_file<&Session::save_scaling, "scaling.csv">},
});

}  // namespace

std::span<const Command> scaling_commands() { return kScalingCommands; }

}  // namespace shardwise::view
