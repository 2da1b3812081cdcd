#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/window/explain_model.h"
#include "gui/panels/panels.h"

namespace shardwise::view {

void draw_details(Ui& ui) {
  heading(ui, "Why this number", "formula, values and source of all of them");
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

}  // namespace shardwise::view
