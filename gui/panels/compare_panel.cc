#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/models/compare/calibration_words.h"
#include "gui/models/compare/compare_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {
namespace {

constexpr float kNumber = 86;  // a column of times
constexpr float kNumbers = 3 * kNumber;
constexpr float kNames = 0.5F;  // of what numbers leave
constexpr float kLeastTimeBar = 20;
constexpr float kNameGap = 10;

std::string file_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// "-" for what one side lacks.
std::string time_text(Seconds time, bool there) { return there ? format_seconds(time) : "-"; }

/// The predicted time as a bar, the measured one as a tick. Numbers have columns of their own, so
/// that no label is under a tick.
void draw_time_bar(Ui& ui, const CompareRow& row, ImVec2 at, float width, Seconds most) {
  const auto x = [&](Seconds time) {
    const double share = most > Seconds(0) ? time / most : 0;
    return at.x + width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float height = ImGui::GetTextLineHeight();
  const float top = at.y + height * 0.25F;
  const float bottom = at.y + height * 0.8F;
  if (row.in_predicted) {
    list.AddRectFilled({at.x, top}, {x(row.predicted), bottom}, ui.ink(ui.theme.accent, 0.75F));
  }
  if (!row.in_measured) return;
  const float tick = x(row.measured);
  list.AddRectFilled({tick - ui.units(1), at.y + ui.units(1)},
                     {tick + ui.units(1), at.y + height - ui.units(1)}, ui.ink(ui.theme.text));
}

/// A name that fits: its middle gives way, so that the phase or the stage at its end tells it from
/// another.
std::string fitting_name(Ui& ui, const std::string& name, float width) {
  if (ImGui::CalcTextSize(name.c_str()).x <= width) return name;
  const std::size_t comma = name.rfind(", ");
  const std::string end = comma == std::string::npos ? "" : name.substr(comma);
  const float left = width - ImGui::CalcTextSize(end.c_str()).x;
  const std::string begin = fitting(ui, name.substr(0, comma), left);
  // Three letters at least are left before what was taken out.
  constexpr std::size_t kLeast = 6;
  return begin.size() < kLeast ? fitting(ui, name, width) : begin + end;
}

std::string shown_name(const CompareRow& row) {
  return row.stage >= 0 ? fmt::format("{}, stage {}", row.name, row.stage) : row.name;
}

/// How a row is drawn: with its numbers behind its name, or below it.
struct RowForm {
  float names = 0;  // width
  float bars = 0;   // width; too small: none
  bool two_lines = false;
};

RowForm form_of(Ui& ui, const std::vector<CompareRow>& rows, float width) {
  float widest = 0;
  for (const CompareRow& row : rows) {
    widest = std::max(widest, ImGui::CalcTextSize(shown_name(row).c_str()).x);
  }
  const float free = width - ui.units(kNumbers);
  const float gap = ui.units(kNameGap);
  RowForm form;
  form.names = std::max(free * kNames, widest);
  form.bars = free - form.names - gap;
  form.two_lines = form.bars < ui.units(kLeastTimeBar);
  if (form.two_lines) form.bars = free - gap;
  if (form.two_lines) form.names = width;
  return form;
}

void draw_head(Ui& ui, float left, float right) {
  const float y = ImGui::GetCursorScreenPos().y;
  const ImU32 quiet = ui.ink(ui.theme.quiet);
  const char* const bars = "predicted as bar, measured as tick";
  if (right - left - ui.units(kNumbers) > ImGui::CalcTextSize(bars).x) {
    draw_text(ui, {left, y}, bars, quiet);
  }
  float edge = right;
  for (const char* const head : {"difference", "measured", "predicted"}) {
    draw_text(ui, {edge, y}, head, quiet, 1);
    edge -= ui.units(kNumber);
  }
  ImGui::Dummy({0, ImGui::GetTextLineHeight() + ui.units(2)});
}

void draw_compare_row(Ui& ui, const CompareRow& row, std::size_t index, Seconds most,
                      const RowForm& form) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + ImGui::GetContentRegionAvail().x - ui.units(4);
  const float line = ImGui::GetTextLineHeight();
  ImGui::PushID(static_cast<int>(index));
  const bool chosen = index == ui.state.compare.row && !ui.state.compare.looked_at.empty();
  const ImVec2 size(0, form.two_lines ? 2 * line : 0);
  if (ImGui::Selectable("##row", chosen, 0, size)) {
    ui.want(fmt::format("compare.worst {}", index + 1));
  }
  ImGui::PopID();
  const std::string probe = fmt::format("compare.row.{}", index + 1);
  ui.probes.put_item(probe);
  const std::string name = shown_name(row);
  const std::string shown = fitting_name(ui, name, form.names);
  if (shown != name) ImGui::SetItemTooltip("%s", name.c_str());
  draw_text(ui, at, shown, ui.ink(ui.theme.text));
  ui.probes.put(probe + ".name", at, {at.x + ImGui::CalcTextSize(shown.c_str()).x, at.y + line});
  const float y = at.y + (form.two_lines ? line : 0);
  if (form.bars > ui.units(kLeastTimeBar)) {
    const float bars = at.x + (form.two_lines ? 0 : form.names + ui.units(kNameGap));
    draw_time_bar(ui, row, {bars, y}, form.bars, most);
    ui.probes.put(probe + ".bar", {bars, y}, {bars + form.bars, y + line});
  }
  ImGui::PushFont(ui.fonts.number, 14);
  float edge = right;
  const auto number = [&](const std::string& words, std::string_view hex) {
    draw_text(ui, {edge, y}, words, ui.ink(hex), 1);
    edge -= ui.units(kNumber);
  };
  number(signed_seconds(row.difference()),
         row.difference() > Seconds(0) ? ui.theme.warning : ui.theme.text);
  number(time_text(row.measured, row.in_measured), ui.theme.text);
  number(time_text(row.predicted, row.in_predicted), ui.theme.text);
  ImGui::PopFont();
}

void draw_list(Ui& ui, const std::vector<CompareRow>& rows) {
  Seconds most;
  for (const CompareRow& row : rows) most = std::max({most, row.predicted, row.measured});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x - ui.units(4);
  draw_head(ui, at.x, at.x + width);
  const RowForm form = form_of(ui, rows, width);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto index = static_cast<std::size_t>(i);
      draw_compare_row(ui, rows[index], index, most, form);
    }
  }
}

void draw_compare_controls(Ui& ui) {
  const std::vector<std::string> names(kCompareByNames.begin(), kCompareByNames.end());
  const auto by = static_cast<int>(ui.state.compare.by);
  const int clicked = segments(ui, "compare.by", names, by);
  for (int i = by; clicked >= 0 && i % 3 != clicked; ++i) ui.want("compare.by");
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const auto button = [&](const char* words, const char* command) {
    const float width = ImGui::CalcTextSize(words).x + 2 * ImGui::GetStyle().FramePadding.x;
    const float gap = ui.units(6);
    if (ImGui::GetItemRectMax().x + gap + width <= right) ImGui::SameLine(0, gap);
    if (ImGui::Button(words)) ui.want(command);
    ui.probes.put_item(command);
  };
  button("worst  J", "compare.worst");
  if (ui.state.compare.other->measured()) button("calibrate  U", "compare.calibrate");
  button("close", "compare.close");
}

}  // namespace

void draw_compare(Ui& ui) {
  const CompareState& compare = ui.state.compare;
  if (!compare.other) return;
  heading(ui, "Compared with", file_name(compare.other->file));
  draw_compare_controls(ui);
  const CompareView* const view = compare.view.get();
  if (view == nullptr) {
    text(ui, "comparing …", ui.theme.quiet);
    return;
  }
  wrapped_text(ui, difference_text(*view, compare.other->origin), ui.theme.text);
  ui.probes.put_item("compare.step");
  if (view->measured_peak > Bytes(0)) {
    const std::string words =
        fmt::format("memory {}, {}{}", format_bytes(view->measured_peak),
                    signed_percent(view->relative_peak()), view->own_memory ? ", own tensors" : "");
    ImGui::SameLine(0, ui.units(16));
    if (ImGui::CalcTextSize(words.c_str()).x > ImGui::GetContentRegionAvail().x) ImGui::NewLine();
    text(ui, words, ui.theme.text);
    ui.probes.put_item("compare.memory");
  }
  if (ui.state.correction) {
    text(ui, correction_text(*ui.state.correction), ui.theme.warning);
    ui.probes.put_item("compare.corrected");
    ImGui::PushTextWrapPos(0);
    text(ui, remains_text(*view, *ui.state.correction), ui.theme.quiet);
    ImGui::PopTextWrapPos();
    ui.probes.put_item("compare.remains");
  }
  const std::vector<CompareRow>& rows = view->rows[static_cast<std::size_t>(compare.by)];
  ImGui::BeginChild("rows");
  if (rows.empty()) {
    text(ui, "nothing differs", ui.theme.quiet);
    ui.probes.put_item("compare.same");
  } else {
    draw_list(ui, rows);
  }
  ImGui::PushTextWrapPos(0);
  for (const std::string& note : view->notes) text(ui, note, ui.theme.quiet);
  const double axis = ui.state.lanes ? ui.state.lanes->length : 0;
  const double beyond = view->lanes.length - axis;
  constexpr double kLittle = 1e-3;  // of the step
  if (axis > 0 && !compare.own && !view->lanes.lanes.empty() && beyond > kLittle * axis) {
    text(ui,
         fmt::format("the last {} of the other step are beyond the timeline (Ctrl+F draws all)",
                     format_seconds(Seconds(beyond))),
         ui.theme.quiet);
    ui.probes.put_item("compare.beyond");
  }
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
}

}  // namespace shardwise::view
