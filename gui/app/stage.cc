#include "gui/app/stage.h"

#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "gui/draw/raster.h"
#include "gui/draw/theme.h"
#include "gui/models/commands/commands.h"
#include "gui/models/window/panel_places.h"
#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

constexpr float kFrameSeconds = 1.0F / 60;

void want_keys(Ui& ui) {
  for (const Command& each : commands()) {
    const ImGuiKeyChord chord = parse_chord(each.key);
    const ImGuiInputFlags repeated = each.repeats ? ImGuiInputFlags_Repeat : ImGuiInputFlags_None;
    if (chord == ImGuiKey_None || !ImGui::Shortcut(chord, ImGuiInputFlags_RouteGlobal | repeated)) {
      continue;
    }
    ui.want(each.needs_argument() ? "app.palette " + ready_line(ui.state, each)
                                  : std::string(each.name));
  }
}

/// A right click on a number asks why it is what it is.
void want_reason(Ui& ui) {
  constexpr float kFar = 4;  // pixels: the button was held to move a plot
  const ImGuiIO& io = ImGui::GetIO();
  const bool clicked = ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
                       io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < kFar * kFar;
  if (!clicked) return;
  const std::string* const subject = ui.probes.reason_at(ImGui::GetMousePos());
  if (subject != nullptr) ui.want("details.show " + *subject);
}

}  // namespace

ImGuiKeyChord parse_chord(std::string_view key) {
  ImGuiKeyChord chord = ImGuiKey_None;
  for (const auto& [name, modifier] :
       {std::pair<std::string_view, int>("Ctrl+", ImGuiMod_Ctrl), {"Shift+", ImGuiMod_Shift}}) {
    if (!key.starts_with(name)) continue;
    chord |= modifier;
    key.remove_prefix(name.size());
  }
  static constexpr std::array kOurs =
      std::to_array<std::pair<std::string_view, int>>({{"?", ImGuiMod_Shift | ImGuiKey_Slash},
                                                       {"/", ImGuiKey_Slash},
                                                       {".", ImGuiKey_Period},
                                                       {",", ImGuiKey_Comma},
                                                       {"[", ImGuiKey_LeftBracket},
                                                       {"]", ImGuiKey_RightBracket},
                                                       {"Esc", ImGuiKey_Escape},
                                                       {"Up", ImGuiKey_UpArrow},
                                                       {"Down", ImGuiKey_DownArrow},
                                                       {"Left", ImGuiKey_LeftArrow},
                                                       {"Right", ImGuiKey_RightArrow}});
  const auto* const ours = std::ranges::find(kOurs, key, &std::pair<std::string_view, int>::first);
  if (ours != kOurs.end()) return chord | ours->second;
  for (int named = ImGuiKey_NamedKey_BEGIN; named < ImGuiKey_NamedKey_END; ++named) {
    if (key == ImGui::GetKeyName(static_cast<ImGuiKey>(named))) return chord | named;
  }
  return ImGuiKey_None;
}

Stage::Stage(FontChoice choice, float scale)
    : imgui_(ImGui::CreateContext()), implot_(ImPlot::CreateContext()), scale_(scale) {
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  io.ConfigErrorRecoveryEnableTooltip = false;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  // The left button is the panels': it chooses, and draws a box.
  ImPlotInputMap& plots = ImPlot::GetInputMap();
  plots.Pan = plots.SelectCancel = ImGuiMouseButton_Right;
  plots.Select = ImGuiMouseButton_Middle;
  fonts_ = load_fonts(choice);
}

Stage::~Stage() {
  for (ImTextureData* const texture : ImGui::GetPlatformIO().Textures) {
    // A backend that has ended has taken its textures along.
    texture->SetTexID(ImTextureID_Invalid);
    texture->SetStatus(ImTextureStatus_Destroyed);
  }
  ImPlot::DestroyContext(implot_);
  ImGui::DestroyContext(imgui_);
}

void Stage::place_panels(const std::string& settings) {
  ImGui::LoadIniSettingsFromMemory(settings.data(), settings.size());
}

std::string Stage::panels() const {
  std::size_t size = 0;
  const char* const text = ImGui::SaveIniSettingsToMemory(&size);
  return places_of_panels({text, size});
}

void Stage::save_view(Session& session) const {
  const std::string path = session.take_view_path();
  if (path.empty()) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const AppState& state = session.state();
  session.save_view(path, {static_cast<int>(size.x), static_cast<int>(size.y), state.dark,
                           state.workspace, panels()});
}

void Stage::prepare(Session& session) {
  session.collect();
  const std::string settings = session.take_panels();
  if (!settings.empty()) place_panels(settings);
  apply(theme_of(session.state().dark), scale_);
}

void Stage::draw(Session& session) {
  const Theme& theme = theme_of(session.state().dark);
  probes_.clear();
  Ui ui{session.state(), theme, fonts_, probes_, palette_, columns_, arranged_, fronted_,
        scale_,          {},    {},     {},      false,    false,    false};
  want_keys(ui);
  draw_window(ui);
  session.hold_pointer(ImGui::IsMouseDown(ImGuiMouseButton_Left));
  want_reason(ui);
  for (const std::string& line : ui.wanted) {
    const std::string problem = run_command(session, line);
    if (!problem.empty()) session.say(problem);
  }
  session.want_bars(ui.visible_rows);
  if (ui.fix_row) session.want_fix(*ui.fix_row);
  if (ui.menus) session.want_catalogue();
  if (ui.levers) session.want_levers();
  if (ui.links) session.want_links();
  save_view(session);
}

void Stage::frame(Session& session, ImVec2 size) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = size;
  io.DeltaTime = kFrameSeconds;
  prepare(session);
  ImGui::NewFrame();
  draw(session);
  ImGui::Render();
  serve_textures();
}

Image Stage::picture(const Session& session) const {
  const std::array<int, 3> page = sim::channels(theme_of(session.state().dark).page);
  return rasterise(*ImGui::GetDrawData(),
                   {static_cast<std::uint8_t>(page[0]), static_cast<std::uint8_t>(page[1]),
                    static_cast<std::uint8_t>(page[2])});
}

}  // namespace shardwise::view
