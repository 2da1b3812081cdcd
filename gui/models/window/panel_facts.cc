#include "gui/models/window/panel_facts.h"

#include <algorithm>
#include <array>

namespace shardwise::view {
namespace {

bool compares(const AppState& state) { return state.compare.other != nullptr; }
bool follows(const AppState& state) { return !state.metrics.file.empty(); }

constexpr std::uint8_t bit(Workspace workspace) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(workspace));
}
constexpr std::uint8_t kExplore = bit(Workspace::explore);
constexpr std::uint8_t kMemory = bit(Workspace::memory);
constexpr std::uint8_t kTimeline = bit(Workspace::timeline);
constexpr std::uint8_t kMesh = bit(Workspace::mesh);
constexpr std::uint8_t kScaling = bit(Workspace::scaling);
constexpr std::uint8_t kEveryWorkspace = kExplore | kMemory | kTimeline | kMesh | kScaling;

constexpr std::array kFacts = std::to_array<PanelFacts>({
    {"what_if", "What if", kExplore | kMemory | kTimeline | kMesh,
     "what the question and the layout are now", "docs/viewer.md, What if"},
    {"explorer", "Strategies", kExplore, "layouts of the usual space, counted by whether they fit",
     "docs/search.md"},
    {"trade", "Memory and time", kExplore,
     "a dot is a layout: peak of the fullest GPU, time of a step by the step-time model",
     "docs/memory.md, docs/time.md"},
    {"memory", "Memory per GPU", kExplore | kMemory,
     "bytes of the fullest GPU by group and category, at each phase of the step", "docs/memory.md"},
    {"timeline", "One step", kExplore | kTimeline, "the step on the virtual clock of the simulator",
     "docs/simulator.md"},
    {"why", "Why not", kExplore, "what the layout has more than the best, part by part",
     "docs/search.md"},
    {"neighbours", "Neighbours", kExplore, "a fresh estimate of each layout one choice away",
     "docs/search.md"},
    {"levers", "What helps", kExplore,
     "the best layout of a search of each changed question, simulated; ~ by the step-time model",
     "docs/search.md"},
    {"course", "Memory over the step", kMemory,
     "bytes that the allocator holds on the simulator's clock, by group",
     "docs/simulator.md, docs/memory.md"},
    {"mesh", "Mesh", kMesh, "ranks in the layout's order, over nodes", "docs/search.md"},
    {"stretch", "Faster links", kExplore | kMesh,
     "an estimate of the step with faster or slower links", "docs/time.md"},
    {"order", "Order of axes", kMesh, "an estimate of the step with the axes in another order",
     "docs/time.md"},
    {"traffic", "Links", kMesh,
     "bytes that a rank sends over each kind of link in a step, and the time of each axis",
     "docs/data_parallel_time.md"},
    {"heat", "Scaling map", kScaling,
     "the best layout of a search for each number of GPUs and each row", "docs/search.md"},
    {"scaling_table", "Other numbers of GPUs", kScaling,
     "a search of its own for each number of GPUs", "docs/search.md"},
    {"compare", "Compared", kEveryWorkspace, "what was predicted beside what was measured",
     "docs/viewer.md, Compare", compares},
    {"metrics", "Run", kEveryWorkspace, "what a run writes while it trains", "docs/formats.md",
     follows},
    {"selection", "Selection", kTimeline,
     "busy time, bytes and bus bandwidth of the simulated step's streams", "docs/simulator.md"},
});

}  // namespace

std::span<const PanelFacts> panel_facts() { return kFacts; }

const PanelFacts* find_panel(std::string_view id) {
  const auto* const found = std::ranges::find(kFacts, id, &PanelFacts::id);
  return found == kFacts.end() ? nullptr : &*found;
}

}  // namespace shardwise::view
