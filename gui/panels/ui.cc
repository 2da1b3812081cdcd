#include "gui/panels/ui.h"

#include <cmath>

namespace shardwise::view {
namespace {

float width_of(std::string_view words) {
  return ImGui::CalcTextSize(words.data(), words.data() + words.size()).x;
}

}  // namespace

void text(Ui& ui, std::string_view words, std::string_view hex) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(hex));
  ImGui::TextUnformatted(words.data(), words.data() + words.size());
  ImGui::PopStyleColor();
}

void heading(Ui& ui, std::string_view title, std::string_view note) {
  ImGui::PushFont(ui.fonts.heading, 0);
  text(ui, title, ui.theme.text);
  ImGui::PopFont();
  if (note.empty()) return;
  ImGui::SameLine(0, ui.units(10));
  const float room = ImGui::GetWindowWidth() - ImGui::GetCursorPosX();
  if (width_of(note) > room) return ImGui::NewLine();
  text(ui, note, ui.theme.quiet);
}

void number_right(Ui& ui, std::string_view words, std::string_view hex) {
  constexpr float kSmaller = 14;
  ImGui::PushFont(ui.fonts.number, kSmaller);
  const float room = ImGui::GetContentRegionAvail().x - width_of(words);
  if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
  text(ui, words, hex);
  ImGui::PopFont();
}

void draw_text(Ui& /*ui*/, ImVec2 at, std::string_view words, ImU32 ink, float align) {
  at.x -= align * width_of(words);
  at.x = std::floor(at.x);
  at.y = std::floor(at.y);
  ImGui::GetWindowDrawList()->AddText(at, ink, words.data(), words.data() + words.size());
}

int segments(Ui& ui, const char* id, const std::vector<std::string>& words, int chosen) {
  int clicked = -1;
  ImGui::PushID(id);
  ImGui::PushStyleVarX(ImGuiStyleVar_ItemSpacing, ui.units(2));
  for (int i = 0; i < static_cast<int>(words.size()); ++i) {
    const std::string& word = words[static_cast<std::size_t>(i)];
    if (i > 0) ImGui::SameLine();
    const bool on = i == chosen;
    ImGui::PushStyleColor(ImGuiCol_Button, ui.ink(on ? ui.theme.selected : ui.theme.panel));
    ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(on ? ui.theme.text : ui.theme.quiet));
    if (ImGui::Button(word.c_str())) clicked = i;
    ImGui::PopStyleColor(2);
    ui.probes.put_item(std::string(id) + "." + word);
  }
  ImGui::PopStyleVar();
  ImGui::PopID();
  return clicked;
}

float segments_width(Ui& ui, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) {
    width += width_of(word) + 2 * ImGui::GetStyle().FramePadding.x + ui.units(2);
  }
  return width;
}

void legend(Ui& ui, const std::vector<std::pair<std::string, std::string_view>>& entries) {
  const float square = ui.units(9);
  const float gap = ui.units(5);
  const float between = ui.units(14);
  const float left = ImGui::GetCursorScreenPos().x;
  const float right = left + ImGui::GetContentRegionAvail().x;
  const float line = ImGui::GetTextLineHeight() + ui.units(3);
  ImVec2 at = ImGui::GetCursorScreenPos();
  for (const auto& [words, hex] : entries) {
    const float width = square + gap + width_of(words);
    if (at.x > left && at.x + width > right) at = {left, at.y + line};
    const float top = at.y + (ImGui::GetTextLineHeight() - square) / 2;
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + square, top + square},
                                              ui.ink(hex), ui.units(2));
    draw_text(ui, {at.x + square + gap, at.y}, words, ui.ink(ui.theme.quiet));
    at.x += width + between;
  }
  ImGui::Dummy({right - left, at.y + line - ImGui::GetCursorScreenPos().y});
}

}  // namespace shardwise::view
