#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "gui/models/explore/why_model.h"
#include "gui/models/question/layout_text.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {
namespace {

constexpr float kLeastWaterfall = 60;
constexpr float kValues = 74;

std::string signed_text(double change, bool bytes) {
  return bytes ? signed_bytes(Bytes(std::llround(change))) : signed_seconds(Seconds(change));
}

/// From the winner's value at the top to the other's at the bottom, a line for each step.
void draw_waterfall(Ui& ui, const std::string& name, const Waterfall& fall, bool bytes,
                    const std::string& other) {
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const float gap = ui.units(8);
  float labels = std::max(ImGui::CalcTextSize("best").x, ImGui::CalcTextSize(other.c_str()).x);
  for (const WaterStep& step : fall.steps) {
    labels = std::max(labels, ImGui::CalcTextSize(step.label.c_str()).x);
  }
  labels = std::min(labels, room - gap - ui.units(kLeastWaterfall + kValues));
  const float left = begin.x + labels + gap;
  const float right = std::max(left + 1, begin.x + room - ui.units(kValues));
  double least = std::min(fall.winner, fall.other);
  double most = std::max(fall.winner, fall.other);
  double at = fall.winner;
  for (const WaterStep& step : fall.steps) {
    at += step.change;
    least = std::min(least, at);
    most = std::max(most, at);
  }
  // What all of them have is left out, so that differences are seen.
  const double margin = std::max((most - least) * 0.25, most * 0.01);
  const double from = std::max(0.0, least - margin);
  const double span = std::max(most - from, 1e-12);
  const auto x = [&](double value) {
    return left + static_cast<float>((value - from) / span) * (right - left);
  };
  const float line = ImGui::GetTextLineHeight() + ui.units(3);
  float y = begin.y;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto row = [&](const std::string& label, double before, double after, std::string_view hex,
                       const std::string& value) {
    draw_text(ui, {left - gap, y}, fitting(ui, label, labels), ui.ink(ui.theme.quiet), 1);
    list.AddRectFilled({x(std::min(before, after)), y + ui.units(2)},
                       {std::max(x(std::max(before, after)), x(std::min(before, after)) + 1),
                        y + line - ui.units(3)},
                       ui.ink(hex));
    draw_text(ui, {begin.x + room, y}, value, ui.ink(ui.theme.text), 1);
    ui.probes.put("why." + name + "." + label, {left, y}, {right, y + line});
    y += line;
  };
  const auto whole = [&](double value) {
    return bytes ? format_bytes(Bytes(static_cast<std::int64_t>(value)))
                 : format_seconds(Seconds(value));
  };
  row("best", from, fall.winner, ui.theme.accent, whole(fall.winner));
  at = fall.winner;
  for (const WaterStep& step : fall.steps) {
    row(step.label, at, at + step.change, step.change > 0 ? ui.theme.bad : ui.theme.good,
        signed_text(step.change, bytes));
    at += step.change;
  }
  row(other, from, fall.other, ui.theme.quiet, whole(fall.other));
  ImGui::Dummy({room, y - begin.y});
}

/// Values that people type: why the best layout has not these.
void draw_typed(Ui& ui) {
  std::array<char, 128> typed{};
  ui.state.exploring.why.asked.copy(typed.data(), typed.size() - 1);
  ImGui::SetNextItemWidth(-1);
  if (ImGui::InputTextWithHint("##values", "why not  tp=4 pp=2   (Enter)", typed.data(),
                               typed.size(), ImGuiInputTextFlags_EnterReturnsTrue)) {
    ui.want(std::string("why.layout ") + typed.data());
  }
  ui.probes.put_item("why.values");
}

/// As plan --why-not prints it.
void draw_said(Ui& ui, const std::string& said) {
  ImGui::PushFont(ui.fonts.number, 12);
  text(ui, said, ui.theme.text);
  ImGui::PopFont();
  ui.probes.put_item("why.said");
}

}  // namespace

void draw_why(Ui& ui) {
  if (!ui.state.winner) {
    heading(ui, "Why not", ui.state.current() ? "nothing fits" : "searching …");
    return;
  }
  const StepReport& winner = *ui.state.winner;
  const TypedWhy& typed = ui.state.exploring.why;
  const bool asked = !typed.asked.empty();
  const StepReport& other = asked && typed.other ? *typed.other : ui.state.report;
  const bool same = winner.layout == other.layout;
  model_heading(ui, "Why not");
  if (!asked && !same) wrapped_text(ui, verdict_text(winner, other), ui.theme.text);
  draw_typed(ui);
  ImGui::BeginChild("why");
  if (asked && typed.text.empty()) {
    text(ui, "searching …", ui.theme.quiet);
  } else if (asked && (!typed.other || same)) {
    draw_said(ui, typed.text);
  } else if (same) {
    text(ui, "the best layout is selected: select another", ui.theme.quiet);
  } else {
    wrapped_text(ui, "best " + layout_text(winner.layout), ui.theme.quiet);
    const std::string label = asked ? typed.asked : "selected";
    draw_waterfall(ui, "time", time_waterfall(winner, other), false, label);
    ImGui::Dummy({0, ui.units(4)});
    draw_waterfall(ui, "memory", memory_waterfall(winner, other), true, label);
    if (asked) draw_said(ui, typed.text);
  }
  ImGui::EndChild();
}

}  // namespace shardwise::view
