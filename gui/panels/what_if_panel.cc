#include <fmt/format.h>

#include <string>

#include "gui/models/explore_model.h"
#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

void draw_slider(Ui& ui, const Slider& slider) {
  text(ui, slider.label, ui.theme.quiet);
  ImGui::SameLine();
  number_right(ui, slider.value, ui.theme.text);
  ImGui::PushID(slider.id.c_str());
  ImGui::SetNextItemWidth(-1);
  int at = static_cast<int>(slider.at);
  const int last = static_cast<int>(slider.steps.size()) - 1;
  ImGui::BeginDisabled(last < 1);
  ImGui::PushStyleVarY(ImGuiStyleVar_FramePadding, ui.units(1));
  if (ImGui::SliderInt("##at", &at, 0, std::max(last, 1), "") &&
      at != static_cast<int>(slider.at)) {
    ui.want(
        fmt::format("question.set {} {}", slider.id, slider.steps[static_cast<std::size_t>(at)]));
  }
  ImGui::PopStyleVar();
  ImGui::EndDisabled();
  ui.probes.put_item("what_if." + slider.id);
  ImGui::PopID();
  ImGui::Dummy({0, ui.units(1)});
}

}  // namespace

void draw_what_if(Ui& ui) {
  heading(ui, "What if");
  for (const SliderSection& section : ui.state.sliders) {
    ImGui::Dummy({0, ui.units(2)});
    ImGui::PushFont(ui.fonts.heading, 13);
    text(ui, section.heading, ui.theme.accent);
    ImGui::PopFont();
    for (const Slider& slider : section.sliders) draw_slider(ui, slider);
  }
  ImGui::Dummy({0, ui.units(4)});
  text(ui, known_text(ui.state.answer, ui.state.current()), ui.theme.quiet);
}

}  // namespace shardwise::view
