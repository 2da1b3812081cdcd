#include "gui/models/commands/command_groups.h"
#include "gui/models/question/choices.h"
#include "gui/models/window/panel_facts.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>

namespace shardwise::view {
namespace {

template <Workspace kWhich>
std::string show_workspace(Session& session, const std::string&) {
  session.set_workspace(kWhich);
  return "";
}

/// "gathered and staged". Nothing: all of them, or none where all are open.
std::string open_group(Session& session, const std::string& label) {
  std::bitset<kMemoryGroups>& open = session.exploring().open_groups;
  if (label.empty()) {
    open.all() ? open.reset() : open.set();
    return "";
  }
  const auto group = named<MemoryGroup>(kMemoryGroupLabels, label);
  if (!group) return none_of(label, kMemoryGroupLabels);
  open.flip(static_cast<std::size_t>(*group));
  return "";
}

std::string list_buffers(Session& session, const std::string& label) {
  const auto group = named<MemoryGroup>(kMemoryGroupLabels, label);
  if (!group && !label.empty()) return none_of(label, kMemoryGroupLabels);
  session.set_memory_group(group);
  return "";
}

std::vector<CommandChoice> panels_to_show(const AppState& state) {
  std::vector<CommandChoice> panels;
  for (const PanelFacts& each : panel_facts()) {
    if (each.shows(state)) panels.push_back({each.id, each.title});
  }
  return panels;
}

constexpr std::array kWindowCommands = std::to_array<Command>({
    {"view.explore", "1", "Show the strategies, memory and time", "",
     show_workspace<Workspace::explore>},
    {"view.memory", "2", "Show memory by phase, stage and category", "",
     show_workspace<Workspace::memory>},
    {"view.timeline", "3", "Show the step on a timeline", "", show_workspace<Workspace::timeline>},
    {"view.mesh", "4", "Show the mesh on the machines", "", show_workspace<Workspace::mesh>},
    {"view.scaling", "5", "Show other numbers of GPUs", "", show_workspace<Workspace::scaling>},
    {"panel.show", "Shift+I", "Bring a panel to the front", "PANEL",
     with_words<&Session::show_panel>, panels_to_show},
    {"view.light", "Ctrl+L", "Switch between light and dark", "",
     [](Session& session, const std::string&) {
       session.set_dark(!session.state().dark);
       return std::string();
     }},
    {"view.reset", "Ctrl+R", "Put all panels back in their places", "", does<&Session::arrange>},
    {"view.save", "Ctrl+Shift+S", "Save the places of all panels", "FILE",
     with_file<&Session::request_view, "panels.json">},
    {"view.load", "Ctrl+Shift+L", "Put all panels where a file says", "FILE",
     with_words<&Session::load_view>},
    {"app.palette", "Ctrl+K", "Open the command palette", "[WORDS]",
     with_words<&Session::open_palette>},
    {"app.search", "/", "Search rows of the table, or spans on the timeline", "",
     [](Session& session, const std::string&) {
       const bool timeline = session.state().workspace == Workspace::timeline;
       session.open_palette(timeline ? "timeline.search " : "table.filter ");
       return std::string();
     }},
    {"app.start", "Ctrl+N", "Choose a model, a cluster and the number of GPUs", "",
     does<&Session::toggle_start>},
    {"app.help", "?", "Show all keys", "", does<&Session::toggle_help>},
    {"app.close", "Esc", "Close what is open", "", does<&Session::close_all>},
    {"app.quit", "Ctrl+Q", "End the program", "", does<&Session::quit>},
    {"details.show", "I", "Show why numbers are what they are, of a word", "[WORD]",
     [](Session& session, const std::string& word) {
       session.set_subject(word);
       return std::string();
     }},
    {"summary.pin", "Shift+N", "Compare with the selection of now, or no longer", "",
     does<&Session::toggle_pin>},
    {"memory.open", "Shift+G", "Show the categories of a group of memory, of all or of none",
     "[GROUP]", open_group},
    {"memory.buffers", "Ctrl+B", "List what a group holds at the peak of the step", "[GROUP]",
     list_buffers},
    {"memory.by", "B", "Show memory by phase or by stage", "",
     [](Session& session, const std::string&) {
       const bool phase = session.state().memory_by == MemoryBy::phase;
       session.set_memory_by(phase ? MemoryBy::stage : MemoryBy::phase);
       return std::string();
     }},
});

}  // namespace

std::span<const Command> window_commands() { return kWindowCommands; }

}  // namespace shardwise::view
