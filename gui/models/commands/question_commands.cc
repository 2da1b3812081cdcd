#include "gui/models/commands/command_groups.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "answers/plan_question.h"
#include "gui/models/question/choices.h"
#include "planner/spec/text/number.h"

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

/// "tp 4": a field to a value.
std::string set_slider(Session& session, const std::string& argument) {
  const std::size_t space = argument.find(' ');
  return session.type_field(argument.substr(0, space),
                            space == std::string::npos ? "" : argument.substr(space + 1));
}

std::string set_objective(Session& session, const std::string& word) {
  const auto objective = named<Objective>(sim::kObjectiveNames, word);
  if (!objective) return none_of(word, sim::kObjectiveNames);
  session.set_objective(*objective);
  return "";
}

constexpr std::array kQuestionCommands = std::to_array<Command>({
    {"question.undo", "Ctrl+Z", "Undo the last change", "", does<&Session::undo>, nullptr, true},
    {"question.redo", "Ctrl+Shift+Z", "Make it again", "", does<&Session::redo>, nullptr, true},
    {"question.set", "E", "Change a field of the mesh, the job or the cluster", "FIELD VALUE",
     set_slider},
    {"question.lock", "K", "List only layouts with the value of a field, or all again",
     "FIELD [VALUE]",
     [](Session& session, const std::string& argument) {
       const std::size_t space = argument.find(' ');
       return session.toggle_lock(argument.substr(0, space),
                                  space == std::string::npos ? "" : argument.substr(space + 1));
     }},
    {"question.open", "Shift+U", "List every value of a field that has one in the usual space",
     "FIELD", with_words<&Session::toggle_open>},
    {"question.objective", "Shift+J", "Rank by step_time, memory, cost or tokens_per_dollar",
     "WHAT", set_objective},
    {"question.model", "Ctrl+1", "Another model of the catalogue", "NAME",
     with_words<&Session::take_model>},
    {"question.cluster", "Ctrl+2", "Another cluster of the catalogue", "NAME",
     with_words<&Session::take_cluster>},
    {"question.engine", "Ctrl+3", "Another engine", "NAME", with_words<&Session::take_engine>},
    {"levers.take", "Ctrl+H", "Show a row of what would help most", "ROW",
     [](Session& session, const std::string& argument) {
       const auto most = static_cast<std::int64_t>(session.state().exploring.levers.rows.size());
       std::int64_t row = 0;
       const std::string problem = read_integer(argument, 1, std::max<std::int64_t>(1, most), row);
       return problem.empty() ? session.take_lever(static_cast<std::size_t>(row - 1))
                              : "row: " + problem;
     }},
    {"why.layout", "Shift+W", "Why the best layout has not these values", "[FIELD=VALUE …]",
     with_words<&Session::ask_why>},
    {"layout.next", "Down", "Select the next layout", "",
     [](Session& session, const std::string&) {
       session.move_selection(1);
       return std::string();
     },
     nullptr, true},
    {"layout.previous", "Up", "Select the layout before", "",
     [](Session& session, const std::string&) {
       session.move_selection(-1);
       return std::string();
     },
     nullptr, true},
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

std::span<const Command> question_commands() { return kQuestionCommands; }

}  // namespace shardwise::view
