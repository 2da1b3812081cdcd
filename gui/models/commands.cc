#include "gui/models/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>

#include "gui/models/columns.h"
#include "planner/spec/nearest.h"
#include "planner/spec/number.h"

namespace shardwise::view {
namespace {

template <Workspace kWhich>
std::string show(Session& session, const std::string&) {
  session.set_workspace(kWhich);
  return "";
}

std::string select_row(Session& session, const std::string& argument) {
  const auto most = static_cast<std::int64_t>(session.state().shown.size());
  std::int64_t row = 0;
  const std::string problem = read_integer(argument, 1, std::max<std::int64_t>(1, most), row);
  if (!problem.empty()) return "row: " + problem;
  if (most == 0) return "no rows are shown";
  session.select_row(session.state().shown[static_cast<std::size_t>(row - 1)]);
  return "";
}

std::string sort_by(Session& session, const std::string& argument) {
  const bool second = argument.starts_with('+');
  const std::string key = argument.substr(second ? 1 : 0);
  const std::optional<std::size_t> column = find_column(key);
  if (!column) return fmt::format("{} is no column", key.empty() ? "nothing" : key);
  session.sort_by(*column, second);
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
    {"view.explore", "1", "Show the strategies, memory and time", "", show<Workspace::explore>},
    {"view.memory", "2", "Show memory by phase, stage and category", "", show<Workspace::memory>},
    {"view.timeline", "3", "Show the step on a timeline", "", show<Workspace::timeline>},
    {"view.mesh", "4", "Show the mesh on the machines", "", show<Workspace::mesh>},
    {"view.scaling", "5", "Show other numbers of GPUs", "", show<Workspace::scaling>},
    {"view.light", "Ctrl+L", "Switch between light and dark", "",
     [](Session& session, const std::string&) {
       session.set_dark(!session.state().dark);
       return std::string();
     }},
    {"view.reset", "Ctrl+R", "Put all panels back in their places", "",
     [](Session& session, const std::string&) {
       session.arrange();
       return std::string();
     }},
    {"app.palette", "Ctrl+K", "Open the command palette", "[WORDS]",
     [](Session& session, const std::string& words) {
       session.open_palette(words);
       return std::string();
     }},
    {"app.help", "?", "Show all keys", "",
     [](Session& session, const std::string&) {
       session.toggle_help();
       return std::string();
     }},
    {"app.close", "Escape", "Close what is open", "",
     [](Session& session, const std::string&) {
       session.close_all();
       return std::string();
     }},
    {"app.quit", "Ctrl+Q", "End the program", "",
     [](Session& session, const std::string&) {
       session.quit();
       return std::string();
     }},
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
    {"table.filter", "/", "Show only rows that match", "CONDITIONS",
     [](Session& session, const std::string& argument) {
       session.set_filter(argument);
       return session.state().explore.parsed.problem;
     }},
    {"table.fitting", "X", "Show only layouts that fit, or all", "",
     [](Session& session, const std::string&) {
       session.set_only_fitting(!session.state().explore.only_fitting);
       return std::string();
     }},
    {"table.sort", "O", "Sort by a column; a + before it sorts by it second", "COLUMN", sort_by},
    {"table.unsort", "Shift+O", "Sort as the planner ranks", "",
     [](Session& session, const std::string&) {
       session.set_sort({});
       return std::string();
     }},
    {"details.show", "I", "Show why numbers are what they are, of a word", "[WORD]",
     [](Session& session, const std::string& word) {
       session.set_subject(word);
       if (session.state().workspace != Workspace::memory) session.set_workspace(Workspace::memory);
       return std::string();
     }},
    {"scaling.take", "T", "Take the best layout on another number of GPUs", "GPUS",
     [](Session& session, const std::string& argument) {
       std::int64_t gpus = 0;
       const std::string problem = read_integer(argument, 1, kMostGpus, gpus);
       return problem.empty() ? session.take_scaling(gpus) : "GPUs: " + problem;
     }},
    {"memory.by", "B", "Show memory by phase or by stage", "",
     [](Session& session, const std::string&) {
       const bool phase = session.state().memory_by == MemoryBy::phase;
       session.set_memory_by(phase ? MemoryBy::stage : MemoryBy::phase);
       return std::string();
     }},
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

/// How well letters match a text: where all of them are in it in order, less for gaps.
std::optional<int> match(std::string_view typed, std::string_view text) {
  constexpr int kGap = 1;
  constexpr int kWordStart = 3;
  int score = 0;
  std::size_t at = 0;
  for (const char letter : typed) {
    if (letter == ' ') continue;
    const std::size_t from = at;
    while (at < text.size() && std::tolower(static_cast<unsigned char>(text[at])) !=
                                   std::tolower(static_cast<unsigned char>(letter))) {
      ++at;
    }
    if (at == text.size()) return std::nullopt;
    score -= at > from ? kGap : 0;
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '.') score += kWordStart;
    ++at;
  }
  return score;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  return found == kCommands.end() ? nullptr : found;
}

std::string run_command(Session& session, std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const Command* const command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> known;
    for (const Command& each : kCommands) known.emplace_back(each.name);
    const std::optional<std::string> near = nearest(name, known);
    return fmt::format("unknown command {}{}", name,
                       near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
  const std::string argument(space == std::string_view::npos ? "" : line.substr(space + 1));
  if (command->argument.empty() && !argument.empty()) {
    return fmt::format("{} takes nothing after it", name);
  }
  return command->run(session, argument);
}

std::vector<const Command*> matching_commands(std::string_view typed) {
  std::vector<std::pair<int, const Command*>> scored;
  for (const Command& each : kCommands) {
    const std::optional<int> by_name = match(typed, each.name);
    const std::optional<int> by_text = match(typed, each.text);
    if (!by_name && !by_text) continue;
    scored.emplace_back(std::max(by_name.value_or(-1000), by_text.value_or(-1000)), &each);
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &std::pair<int, const Command*>::first);
  std::vector<const Command*> found;
  found.reserve(scored.size());
  for (const auto& [score, command] : scored) found.push_back(command);
  return found;
}

}  // namespace shardwise::view
