#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {
namespace {

constexpr float kAllColumns = 560;  // units: the names have room beside all columns
constexpr double kWholeCell = 0.5;  // of the step: saved, it fills the cell

/// What a change saves, as a bar below its words; one that takes longer has none.
void draw_saved(Ui& ui, double faster, std::string_view hex) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float top = at.y + ImGui::GetTextLineHeight() - ui.units(1);
  const auto reach = static_cast<float>(std::clamp(faster / kWholeCell, 0.0, 1.0)) * width;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({at.x, top}, {at.x + width, top + ui.units(3)}, ui.ink(ui.theme.raised));
  list.AddRectFilled({at.x + width - reach, top}, {at.x + width, top + ui.units(3)},
                     ui.ink(ui.theme.good));
  number_right(ui, signed_percent(-faster), hex);
}

void draw_row(Ui& ui, std::size_t place, const sim::HelpfulChange& each, bool wide) {
  const bool first = place == 0;
  const bool helps = first || each.faster >= sim::kLeastHelp;
  const std::string_view ink = helps ? ui.theme.text : ui.theme.quiet;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(static_cast<int>(place));
  const ImVec2 at = ImGui::GetCursorPos();
  if (ImGui::Selectable("##row", false, ImGuiSelectableFlags_SpanAllColumns,
                        {0, wrapped_height(each.text)})) {
    ui.want(fmt::format("levers.take {}", place + 1));
  }
  ImGui::SetItemTooltip(
      "%s\n%s%s of memory, %s for 1e9 tokens\na click shows it", each.text.c_str(),
      each.estimated ? "by the step-time model, " : "", format_bytes(each.memory).c_str(),
      each.dollars_per_1e9_tokens > 0 ? format_dollars(each.dollars_per_1e9_tokens).c_str()
                                      : "no price known");
  ui.probes.put_item(fmt::format("levers.row.{}", place + 1));
  ImGui::SetCursorPos(at);
  wrapped_text(ui, each.text, ink);
  ImGui::TableNextColumn();
  number_right(ui, (each.estimated ? "~ " : "") + format_seconds(each.step), ink);
  ImGui::TableNextColumn();
  if (!first) draw_saved(ui, each.faster, helps ? ui.theme.good : ui.theme.quiet);
  if (wide) {
    ImGui::TableNextColumn();
    number_right(ui, format_gib(each.memory), ink);
    ImGui::TableNextColumn();
    number_right(
        ui, each.dollars_per_1e9_tokens > 0 ? format_dollars(each.dollars_per_1e9_tokens) : "-",
        ink);
  }
  ImGui::PopID();
}

}  // namespace

void draw_levers(Ui& ui) {
  ui.levers = true;
  const Levers& levers = ui.state.exploring.levers;
  heading(ui, "What would help most",
          levers.known ? "each change alone, to the best layout" : levers.trying + " …");
  if (!levers.known) return;
  if (!levers.problem.empty()) return text(ui, levers.problem, ui.theme.warning);
  const bool wide = ImGui::GetContentRegionAvail().x >= ui.units(kAllColumns);
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable("levers", wide ? 5 : 3, kFlags)) return;
  ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch, 1);
  const auto fixed = [&](const char* name, std::string_view widest) {
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, number_width(ui, widest));
  };
  fixed("step", "~ 88.8 ms");
  fixed("saved", "-88.8 %");
  if (wide) {
    fixed("GiB", "8888.88");
    fixed("$", "$88,888.8");
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableNextColumn();
  text(ui, "change", ui.theme.quiet);
  const auto head = [&](std::string_view words) {
    ImGui::TableNextColumn();
    number_right(ui, words, ui.theme.quiet);
  };
  head("step");
  head("saved");
  if (wide) {
    head("GiB");
    head("$/1e9");
  }
  for (std::size_t i = 0; i < levers.rows.size(); ++i) draw_row(ui, i, levers.rows[i], wide);
  ImGui::EndTable();
}

}  // namespace shardwise::view
