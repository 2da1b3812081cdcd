#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/commands/commands.h"
#include "gui/models/question/layout_text.h"
#include "gui/models/window/explain_model.h"
#include "gui/models/window/summary_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr float kTileSize = 24;
constexpr float kUnitSize = 14;
constexpr float kTileGap = 24;
constexpr float kLeastGap = 12;  // where all of them would not fit on a line
constexpr float kTileHeight = 60;
constexpr float kBesideSize = 13;
constexpr float kBesideHeight = 18;
constexpr float kChangeSize = 12;  // of what is otherwise than in the baseline

/// Why the tile says what it says, and how wrong such predictions were.
void draw_reasons(Ui& ui, const Tile& tile) {
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ui.units(460));
  if (tile.id != "error" && ui.state.explained) {
    const WhyNumber why = why_tile(*ui.state.explained, tile.id);
    text(ui, why.formula, ui.theme.text);
    if (!why.values.empty()) text(ui, why.values, ui.theme.quiet);
    if (!why.source.empty()) text(ui, why.source, ui.theme.accent);
  }
  const std::string intervals = tile_intervals(
      tile, ui.state.plan, ui.state.simulated ? *ui.state.simulated : ui.state.report);
  if (!intervals.empty()) text(ui, intervals, ui.theme.text);
  constexpr std::size_t kMost = 5;
  if (!ui.state.exploring.nearest.empty()) {
    text(ui, "Such predictions were wrong by (predicted - measured) / measured", ui.theme.text);
  }
  for (std::size_t i = 0; i < std::min(kMost, ui.state.exploring.nearest.size()); ++i) {
    text(ui, figure_text(ui.state.exploring.nearest[i]), ui.theme.quiet);
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

float draw_tile(Ui& ui, const Tile& tile, ImVec2 at) {
  const ImU32 quiet = ui.ink(ui.theme.quiet);
  draw_text(ui, at, tile.label, quiet);
  const float label = ImGui::CalcTextSize(tile.label.c_str()).x;
  const ImVec2 below(at.x, at.y + ImGui::GetTextLineHeight() + ui.units(1));
  ImGui::PushFont(ui.fonts.tile, kTileSize);
  draw_text(ui, below, tile.value, ui.ink(ui.theme.of(tile.tone)));
  const float value = ImGui::CalcTextSize(tile.value.c_str()).x;
  const float height = ImGui::GetTextLineHeight();
  ImGui::PopFont();
  ImGui::PushFont(nullptr, kUnitSize);
  const float unit_gap = ui.units(6);
  const float drop = height - ImGui::GetTextLineHeight() - ui.units(2);
  draw_text(ui, {below.x + value + unit_gap, below.y + drop}, tile.unit, quiet);
  const float unit = ImGui::CalcTextSize(tile.unit.c_str()).x;
  ImGui::PopFont();
  if (!tile.change.empty()) {
    ImGui::PushFont(nullptr, kChangeSize);
    draw_text(ui, {at.x, below.y + height - ui.units(1)}, tile.change,
              ui.ink(ui.theme.of(tile.change_tone)));
    ImGui::PopFont();
  }
  const float width = std::max(label, value + unit_gap + unit);
  const ImVec2 end(at.x + width, at.y + ui.units(kTileHeight));
  ui.probes.put("summary." + tile.id, at, end);
  if (!tile.beside.empty()) {
    ImGui::PushFont(nullptr, kBesideSize);
    draw_text(ui, {at.x, end.y}, tile.beside, quiet);
    const ImVec2 extent = ImGui::CalcTextSize(tile.beside.c_str());
    ImGui::PopFont();
    ui.probes.put("summary." + tile.id + ".beside", {at.x, end.y},
                  {at.x + extent.x, end.y + extent.y});
  }
  ui.probes.explain("tile." + tile.id, at,
                    {end.x, end.y + (tile.beside.empty() ? 0 : ui.units(kBesideHeight))});
  if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(at, end)) {
    draw_reasons(ui, tile);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) ui.want(tile.command);
  }
  return width;
}

float width_of_tile(Ui& ui, const Tile& tile) {
  ImGui::PushFont(ui.fonts.tile, kTileSize);
  const float value = ImGui::CalcTextSize(tile.value.c_str()).x;
  ImGui::PopFont();
  ImGui::PushFont(nullptr, kUnitSize);
  const float unit = ImGui::CalcTextSize(tile.unit.c_str()).x;
  ImGui::PopFont();
  ImGui::PushFont(nullptr, kBesideSize);
  const float beside = ImGui::CalcTextSize(tile.beside.c_str()).x;
  ImGui::PopFont();
  return std::max({ImGui::CalcTextSize(tile.label.c_str()).x, value + ui.units(6) + unit, beside});
}

/// The last thing to say, or how far a file is read.
std::string reading_text(const AppState& state) {
  if (state.compare.reading.empty()) return state.message;
  const ReadSoFar& read = state.compare.read;
  std::string text =
      fmt::format("reading {}, {}", state.compare.reading, format_percent(read.share));
  if (read.spans > 0) text += fmt::format(", {} spans", format_count(read.spans));
  return text + " (Shift+Esc stops)";
}

/// Like is compared with like: simulated steps where both are known.
std::vector<Tile> tiles_of(const AppState& state) {
  const Baseline* const base = state.exploring.baseline();
  const bool simulated = state.simulated && (base == nullptr || base->simulated);
  const StepReport* compared = nullptr;
  if (base != nullptr) compared = simulated ? base->simulated.get() : &base->estimated;
  std::vector<Tile> tiles = summary_tiles(state.plan, simulated ? *state.simulated : state.report,
                                          state.compare.overlay(), compared);
  if (state.compare.overlay() == nullptr) {
    put_run(tiles, state.metrics, state.best_report().step_time);
  }
  std::optional<Tile> error = error_tile(state.exploring.nearest);
  if (error) tiles.push_back(*std::move(error));
  return tiles;
}

/// What can be saved, each with a name for the file that the palette opens with.
void draw_exports(Ui& ui) {
  struct Export {
    const char* command;
    const char* text;
  };
  constexpr std::array kExports = std::to_array<Export>({{"export.page", "Page to send"},
                                                         {"export.png", "Picture of this window"},
                                                         {"export.plan", "Plan"},
                                                         {"export.report", "Report of the step"},
                                                         {"export.trace", "Trace of the step"},
                                                         {"export.csv", "Rows of the table"}});
  if (!ImGui::BeginPopup("exports")) return;
  for (const Export& each : kExports) {
    const Command* const command = find_command(each.command);
    if (command == nullptr) continue;
    if (ImGui::MenuItem(each.text, std::string(command->key).c_str())) {
      ui.want("app.palette " + ready_line(ui.state, *command));
    }
    ui.probes.put_item(std::string("summary.") + each.command);
  }
  if (ImGui::MenuItem("Copy the command")) ui.want("export.command");
  ui.probes.put_item("summary.export.command");
  ImGui::EndPopup();
}

void draw_workspace_bar(Ui& ui) {
  ImGui::PushFont(ui.fonts.heading, 0);
  text(ui, "shardwise", ui.theme.accent);
  ImGui::PopFont();
  ImGui::SameLine(0, ui.units(18));
  std::vector<std::string> names(kWorkspaceNames.begin(), kWorkspaceNames.end());
  const int clicked = segments(ui, "workspace", names, static_cast<int>(ui.state.workspace));
  if (clicked >= 0) ui.want("view." + names[static_cast<std::size_t>(clicked)]);
  const bool pinned = ui.state.exploring.pinned.has_value();
  ImGui::SameLine(0, ui.units(24));
  if (segments(ui, "summary", {"pin"}, pinned ? 0 : -1) == 0) ui.want("summary.pin");
  const char* const button = "Commands  Ctrl+K";
  const float width = ImGui::CalcTextSize(button).x + 2 * ImGui::GetStyle().FramePadding.x;
  const char* const exports = "Export";
  const float beside = ImGui::CalcTextSize(exports).x + 2 * ImGui::GetStyle().FramePadding.x;
  const float right =
      ImGui::GetWindowWidth() - ImGui::GetStyle().WindowPadding.x - width - beside - ui.units(6);
  const std::string said = reading_text(ui.state);
  if (!said.empty()) {
    ImGui::SameLine(0, ui.units(24));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushClipRect(at, {right - ui.units(12), at.y + ImGui::GetTextLineHeight() * 2}, true);
    text(ui, said, ui.theme.quiet);
    ImGui::PopClipRect();
    ui.probes.put_item("summary.message");
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", said.c_str());
  }
  ImGui::SameLine(std::max(right, ImGui::GetCursorPosX()));
  if (ImGui::Button(exports)) ImGui::OpenPopup("exports");
  ui.probes.put_item("summary.export");
  draw_exports(ui);
  ImGui::SameLine(0, ui.units(6));
  if (ImGui::Button(button)) ui.want("app.palette");
  ui.probes.put_item("summary.commands");
}

}  // namespace

float draw_summary(Ui& ui) {
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize({viewport->WorkSize.x, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.units(16), ui.units(8)});
  ImGui::Begin("summary", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleVar();
  draw_workspace_bar(ui);
  ImGui::Dummy({0, ui.units(1)});

  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const float right = begin.x + ImGui::GetContentRegionAvail().x;
  const std::string title = title_text(ui.state.plan) +
                            (ui.state.simulated ? ", simulated" : ", estimated") +
                            (ui.state.correction ? ", calibrated" : "");
  const std::string question = question_text(ui.state.plan);
  const std::string layout = layout_text(ui.state.plan.layout);
  ImGui::PushFont(ui.fonts.heading, 0);
  float title_width = ImGui::CalcTextSize(title.c_str()).x;
  draw_text(ui, begin, title, ui.ink(ui.theme.text));
  ImGui::PopFont();
  ui.probes.put("summary.title", begin, {begin.x + title_width, begin.y + ui.units(kTileHeight)});
  ui.probes.explain("question", begin, {right, begin.y + ui.units(kTileHeight + 2)});
  const float line = ImGui::GetTextLineHeight();
  draw_text(ui, {begin.x, begin.y + line + ui.units(1)}, question, ui.ink(ui.theme.quiet));
  draw_text(ui, {begin.x, begin.y + 2 * line + ui.units(2)}, layout, ui.ink(ui.theme.quiet));
  title_width = std::max({title_width, ImGui::CalcTextSize(question.c_str()).x,
                          ImGui::CalcTextSize(layout.c_str()).x});

  std::vector<Tile> tiles = tiles_of(ui.state);
  const auto width_of_all = [&] {
    float sum = 0;
    for (const Tile& tile : tiles) sum += width_of_tile(ui, tile);
    return sum;
  };
  float sum = width_of_all();
  const float gaps = ui.units(kLeastGap) * static_cast<float>(tiles.size());
  if (begin.x + title_width + sum + gaps > right) {
    for (Tile& tile : tiles) {
      if (!tile.brief.empty()) tile.unit = tile.brief;
    }
    sum = width_of_all();
  }
  const float spare = right - begin.x - title_width - sum;
  const float gap =
      std::clamp(spare / static_cast<float>(tiles.size()), ui.units(kLeastGap), ui.units(kTileGap));
  ImVec2 at(begin.x + title_width + gap, begin.y + ui.units(2));
  const bool beside =
      std::ranges::any_of(tiles, [](const Tile& tile) { return !tile.beside.empty(); });
  const float row = ui.units(kTileHeight + 2 + (beside ? kBesideHeight : 0));
  for (const Tile& tile : tiles) {
    const float width = width_of_tile(ui, tile);
    if (at.x > begin.x && at.x + width > right) at = {begin.x, at.y + row};
    draw_tile(ui, tile, at);
    at.x += width + gap;
  }
  ImGui::Dummy({0, at.y + row - begin.y});
  const float height = ImGui::GetWindowHeight();
  ImGui::End();
  return height;
}

}  // namespace shardwise::view
