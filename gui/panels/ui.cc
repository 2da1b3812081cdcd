#include "gui/panels/ui.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardwise::view {
namespace {

constexpr int kIndices = 6;  // of a rectangle
constexpr int kCorners = 4;
constexpr float kNumberSize = 14;  // of digits in tables

float width_of(std::string_view words) {
  return ImGui::CalcTextSize(words.data(), words.data() + words.size()).x;
}

ImVec2 wrapped_size(std::string_view words, float width) {
  return ImGui::CalcTextSize(words.data(), words.data() + words.size(), false, width);
}

/// Keeps words with the part of them that is in sight.
void note_text(Ui& ui, std::string_view words, ImVec2 least, ImVec2 most) {
  const ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 from = list.GetClipRectMin();
  const ImVec2 to = list.GetClipRectMax();
  // What goes on above or below is scrolled to.
  const bool in_sight = least.y < to.y && most.y > from.y;
  if (in_sight && (least.x < from.x - 1 || most.x > to.x + 1)) ui.probes.cut(words);
  least = {std::max(least.x, from.x), std::max(least.y, from.y)};
  most = {std::min(most.x, to.x), std::min(most.y, to.y)};
  if (least.x < most.x && least.y < most.y) ui.probes.saw(words, least, most);
}

}  // namespace

std::string fitting(Ui& ui, std::string_view words, float width) {
  if (width_of(words) <= width) return std::string(words);
  ui.probes.cut(words);
  constexpr std::string_view kMore = "…";
  std::size_t kept = words.size();
  while (kept > 0 && width_of(words.substr(0, kept)) + width_of(kMore) > width) {
    --kept;
    // Not inside a letter of several bytes.
    while (kept > 0 && (static_cast<unsigned char>(words[kept]) & 0xC0U) == 0x80U) --kept;
  }
  while (kept > 0 && words[kept - 1] == ' ') --kept;
  return std::string(words.substr(0, kept)) + std::string(kMore);
}

void text(Ui& ui, std::string_view words, std::string_view hex) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(hex));
  ImGui::TextUnformatted(words.data(), words.data() + words.size());
  ImGui::PopStyleColor();
  note_text(ui, words, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

void wrapped_text(Ui& ui, std::string_view words, std::string_view hex, float kept) {
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - kept);
  text(ui, words, hex);
  ImGui::PopTextWrapPos();
}

float wrapped_height(std::string_view words) {
  return wrapped_size(words, ImGui::GetContentRegionAvail().x).y;
}

void fitting_text(Ui& ui, std::string_view words, std::string_view hex) {
  const std::string shown = fitting(ui, words, ImGui::GetContentRegionAvail().x);
  text(ui, shown, hex);
  if (shown.size() != words.size() && ImGui::IsItemHovered()) {
    ImGui::SetTooltip("%s", std::string(words).c_str());
  }
}

void explain(Ui& ui, std::string subject) {
  ui.probes.explain(std::move(subject), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

namespace {

/// \returns whether the line had room for the note
bool put_heading(Ui& ui, std::string_view title, std::string_view note, float kept = 0) {
  ImGui::PushFont(ui.fonts.heading, 0);
  text(ui, title, ui.theme.text);
  ImGui::PopFont();
  const float gap = ui.units(10);
  const float used = ImGui::GetItemRectSize().x + gap;
  const float room = ImGui::GetContentRegionAvail().x - used - (kept > 0 ? kept + gap : 0);
  if (note.empty() || width_of(note) > room) return false;
  ImGui::SameLine(0, gap);
  text(ui, note, ui.theme.quiet);
  return true;
}

}  // namespace

void heading(Ui& ui, std::string_view title, std::string_view note, float kept) {
  put_heading(ui, title, note, kept);
}

void model_heading(Ui& ui, std::string_view title, std::string_view note) {
  if (!ui.state.simulated) return heading(ui, title, note);
  const std::string model = "by the step-time model";
  const std::string both = note.empty() ? model : fmt::format("{}; {}", model, note);
  ImGui::PushFont(ui.fonts.heading, 0);
  const float used = width_of(title) + ui.units(10);
  ImGui::PopFont();
  const bool room = used + width_of(both) <= ImGui::GetContentRegionAvail().x;
  if (!put_heading(ui, title, room ? both : model)) text(ui, model, ui.theme.quiet);
  ui.probes.put_item(fmt::format("by_model.{}", title));
}

void to_right_edge(Ui& ui, float width) {
  const ImGuiStyle& style = ImGui::GetStyle();
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - style.WindowPadding.x -
                      (ImGui::GetScrollMaxY() > 0 ? style.ScrollbarSize : 0);
  const bool room = ImGui::GetItemRectMax().x + ui.units(8) + width <= right;
  if (room) ImGui::SameLine();
  ImGui::SetCursorScreenPos(
      {std::max(ImGui::GetCursorScreenPos().x, right - width), ImGui::GetCursorScreenPos().y});
}

float number_width(Ui& ui, std::string_view words) {
  ImGui::PushFont(ui.fonts.number, kNumberSize);
  const float width = width_of(words);
  ImGui::PopFont();
  return width;
}

void number_right(Ui& ui, std::string_view words, std::string_view hex) {
  ImGui::PushFont(ui.fonts.number, kNumberSize);
  const float room = ImGui::GetContentRegionAvail().x - width_of(words);
  if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
  text(ui, words, hex);
  ImGui::PopFont();
}

void head_right(Ui& ui, std::string_view words, std::string_view hex) {
  const float room = ImGui::GetContentRegionAvail().x;
  const std::size_t space = words.rfind(' ');
  if (space == std::string_view::npos || number_width(ui, words) <= room) {
    return number_right(ui, words, hex);
  }
  ImGui::BeginGroup();
  ImGui::PushStyleVarY(ImGuiStyleVar_ItemSpacing, 0);
  number_right(ui, words.substr(0, space), hex);
  number_right(ui, words.substr(space + 1), hex);
  ImGui::PopStyleVar();
  ImGui::EndGroup();
}

Fills::~Fills() { list_.PrimUnreserve(kIndices * room_, kCorners * room_); }

void Fills::add(ImVec2 least, ImVec2 most, ImU32 ink) {
  constexpr int kTogether = 64;
  if ((ink & IM_COL32_A_MASK) == 0) return;
  if (room_ == 0) {
    list_.PrimReserve(kIndices * kTogether, kCorners * kTogether);
    room_ = kTogether;
  }
  list_.PrimRect(least, most, ink);
  --room_;
}

void draw_text(Ui& ui, ImVec2 at, std::string_view words, ImU32 ink, float align) {
  at.x -= align * width_of(words);
  at.x = std::floor(at.x);
  at.y = std::floor(at.y);
  ImGui::GetWindowDrawList()->AddText(at, ink, words.data(), words.data() + words.size());
  note_text(ui, words, at, {at.x + width_of(words), at.y + ImGui::GetTextLineHeight()});
}

bool toggle(Ui& ui, const std::string& probe, const std::string& word, bool on) {
  ImGui::PushStyleColor(ImGuiCol_Button, ui.ink(on ? ui.theme.selected : ui.theme.panel));
  ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(on ? ui.theme.text : ui.theme.quiet));
  const bool clicked = ImGui::Button(word.c_str());
  ImGui::PopStyleColor(2);
  ui.probes.put_item(probe);
  return clicked;
}

int segments(Ui& ui, const char* id, const std::vector<std::string>& words, int chosen) {
  int clicked = -1;
  ImGui::PushID(id);
  ImGui::PushStyleVarX(ImGuiStyleVar_ItemSpacing, ui.units(2));
  for (int i = 0; i < static_cast<int>(words.size()); ++i) {
    const std::string& word = words[static_cast<std::size_t>(i)];
    if (i > 0) ImGui::SameLine();
    if (toggle(ui, std::string(id) + "." + word, word, i == chosen)) clicked = i;
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
  const float between = ui.units(11);
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
    const ImVec2 begin(std::floor(at.x + square + gap), std::floor(at.y));
    const ImVec2 size = wrapped_size(words, right - begin.x);
    ImGui::GetWindowDrawList()->AddText(nullptr, 0, begin, ui.ink(ui.theme.quiet), words.data(),
                                        words.data() + words.size(), right - begin.x);
    note_text(ui, words, begin, {begin.x + size.x, begin.y + size.y});
    at.x += width + between;
    at.y += size.y - ImGui::GetTextLineHeight();
  }
  ImGui::Dummy({right - left, at.y + line - ImGui::GetCursorScreenPos().y});
}

}  // namespace shardwise::view
