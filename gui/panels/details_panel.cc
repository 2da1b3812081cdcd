#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/window/explain_model.h"
#include "gui/panels/panels.h"

namespace shardwise::view {

namespace {

void list_reasons(Ui& ui) {
  heading(ui, "Why this number", "Esc closes it");
  std::array<char, 128> typed{};
  ui.state.subject.copy(typed.data(), typed.size() - 1);
  ImGui::SetNextItemWidth(-1);
  if (ImGui::InputTextWithHint("##subject", "a word, as gathered or bubble", typed.data(),
                               typed.size())) {
    ui.want(std::string("details.show ") + typed.data());
  }
  ui.probes.put_item("details.subject");
  if (!ui.state.explained) {
    text(ui, "explaining …", ui.theme.quiet);
    return;
  }
  ImGui::BeginChild("list");
  ImGui::PushTextWrapPos(0);
  std::vector<WhyNumber> reasons = why_numbers(*ui.state.explained, ui.state.subject);
  if (std::string_view("published").find(ui.state.subject) != std::string_view::npos) {
    const std::vector<WhyNumber> published = why_published(ui.state.exploring.nearest);
    reasons.insert(reasons.end(), published.begin(), published.end());
  }
  for (const WhyNumber& each : reasons) {
    ImGui::PushFont(ui.fonts.heading, 0);
    text(ui, each.subject, ui.theme.accent);
    ImGui::PopFont();
    ui.probes.put_item("details." + each.subject);
    text(ui, each.formula, ui.theme.text);
    if (!each.values.empty()) {
      ImGui::PushFont(ui.fonts.number, 13);
      text(ui, each.values, ui.theme.quiet);
      ImGui::PopFont();
    }
    if (!each.source.empty()) text(ui, each.source, ui.theme.quiet);
    ImGui::Dummy({0, ui.units(3)});
  }
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
}

}  // namespace

void draw_details(Ui& ui) {
  if (!ui.state.details_open) return;
  constexpr float kWide = 460;
  constexpr float kHigh = 330;
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const ImVec2 size(std::min(ui.units(kWide), viewport->WorkSize.x),
                    std::min(ui.units(kHigh), viewport->WorkSize.y));
  // Beside the number that was clicked, inside the window.
  const ImVec2 mouse = ImGui::GetMousePos();
  const ImVec2 middle(viewport->WorkPos.x + viewport->WorkSize.x / 2,
                      viewport->WorkPos.y + viewport->WorkSize.y / 2);
  const ImVec2 at = ImGui::IsMousePosValid(&mouse) ? mouse : middle;
  const ImVec2 most(viewport->WorkPos.x + viewport->WorkSize.x - size.x,
                    viewport->WorkPos.y + viewport->WorkSize.y - size.y);
  ImGui::SetNextWindowPos({std::clamp(at.x + ui.units(12), viewport->WorkPos.x, most.x),
                           std::clamp(at.y + ui.units(12), viewport->WorkPos.y, most.y)},
                          ImGuiCond_Appearing);
  ImGui::SetNextWindowSize(size, ImGuiCond_Appearing);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("details", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoCollapse |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar();
  if (!ui.state.palette_open) ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  list_reasons(ui);
  ImGui::End();
}

}  // namespace shardwise::view
