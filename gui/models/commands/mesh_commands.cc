#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "gui/models/commands/command_groups.h"
#include "gui/models/question/choices.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

std::string set_mesh_colour(Session& session, const std::string& word) {
  const auto colour = choose(kMeshColours, session.state().mesh.colour, word);
  if (!colour) return none_of(word, kMeshColours);
  session.set_mesh_colour(*colour);
  return "";
}

std::string pin_rank(Session& session, const std::string& word) {
  if (word.empty()) return session.pin_rank(std::nullopt);
  std::int64_t rank = 0;
  const std::string problem = read_integer(word, 0, kMostGpus, rank);
  return problem.empty() ? session.pin_rank(rank) : "rank: " + problem;
}

/// "infiniband 2".
std::string set_bandwidth(Session& session, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  double factor = 1;
  if (space == std::string::npos) return "say how many times as fast: infiniband 2";
  const std::string problem =
      read_number(argument.substr(space + 1), kLeastStretch, kMostStretch, factor);
  if (!problem.empty()) return "factor: " + problem;
  return session.set_bandwidth(argument.substr(0, space), factor);
}

constexpr std::array kMeshCommands = std::to_array<Command>({
    {"mesh.rank", "Shift+K", "Keep the groups of a rank in sight, or of none", "[RANK]", pin_rank},
    {"mesh.colour", "Shift+H", "Colour of the ranks: stage, time, memory or sent", "[COLOUR]",
     set_mesh_colour},
    {"mesh.order", "Shift+M", "Lay ranks out in another order of axes, fastest first", "AXES",
     [](Session& session, const std::string& words) { return session.set_order(words, false); }},
    {"mesh.try", "", "What another order of axes would cost, or nothing", "[AXES]",
     [](Session& session, const std::string& words) { return session.set_order(words, true); }},
    {"mesh.bandwidth", "Shift+B", "Make a link so many times as fast", "LINK FACTOR",
     set_bandwidth},
    {"mesh.reset", "Shift+Z", "Give links the bandwidth that they have", "",
     does<&Session::reset_bandwidth>},
    {"mesh.take", "Shift+T", "Ask everything again with links of that bandwidth", "",
     does<&Session::take_bandwidth>},
});

}  // namespace

std::span<const Command> mesh_commands() { return kMeshCommands; }

}  // namespace shardwise::view
