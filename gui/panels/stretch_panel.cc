#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/mesh/mesh_state.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr int kSteps = 12;                       // of the slider, to either side
constexpr double kStep = 1.1892071150027210667;  // of the factor: the fourth root of 2

/// The step over the factor of a link, above its slider: the higher the longer.
void draw_curve(Ui& ui, const StretchCurve& curve, double factor) {
  const float height = ui.units(48);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::Dummy({width, height});
  if (curve.step_times.size() < 2) return;
  const double least = std::ranges::min(curve.step_times).value();
  const double most = std::ranges::max(curve.step_times).value();
  const double spread = std::max(most - least, 0.01 * most);
  const auto place = [&](double of, double seconds) {
    const double across = std::log(of / kLeastStretch) / std::log(kMostStretch / kLeastStretch);
    const double down = 1 - (seconds - least) / spread;
    return ImVec2(at.x + static_cast<float>(across) * width,
                  at.y + ui.units(3) + static_cast<float>(down) * (height - ui.units(6)));
  };
  std::vector<ImVec2> line;
  for (std::size_t i = 0; i < curve.factors.size(); ++i) {
    line.push_back(place(curve.factors[i], curve.step_times[i].value()));
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (std::size_t i = 1; i < line.size(); ++i) {
    list.AddLine(line[i - 1], line[i], ui.ink(ui.theme.accent), ui.units(2));
  }
  const auto upright = [&](double of, std::string_view hex) {
    const float x = place(of, least).x;
    list.AddLine({x, at.y}, {x, at.y + height}, ui.ink(hex), ui.units(1));
  };
  upright(1, ui.theme.border);
  if (factor != 1) upright(factor, ui.theme.warning);
  // Each end's time is beside its own end of the curve, where the curve is not.
  const float text_height = ImGui::GetTextLineHeight();
  constexpr float kBeside = 0.16F;  // of the width: the curve is steep before
  draw_text(ui, {at.x + kBeside * width, std::min(line.front().y, at.y + height / 2) - ui.units(3)},
            format_seconds(curve.step_times.front()), ui.ink(ui.theme.quiet));
  draw_text(ui, {line.back().x, std::max(at.y, line.back().y - text_height - ui.units(4))},
            format_seconds(curve.step_times.back()), ui.ink(ui.theme.quiet), 1);
}

void draw_link(Ui& ui, std::size_t tier) {
  const LinkStretch& stretch = ui.state.mesh.stretch;
  const std::string& name = ui.state.plan.cluster.tiers[tier].name;
  text(ui, name, ui.theme.quiet);
  ImGui::SameLine();
  number_right(ui, stretch_text(ui.state.plan, stretch, tier), ui.theme.text);
  if (tier < stretch.curves.size()) draw_curve(ui, stretch.curves[tier], stretch.factors[tier]);
  ImGui::PushID(static_cast<int>(tier));
  ImGui::SetNextItemWidth(-1);
  const double now = std::log(stretch.factors[tier]) / std::log(kStep);
  int at = static_cast<int>(std::lround(now));
  ImGui::PushStyleVarY(ImGuiStyleVar_FramePadding, ui.units(1));
  if (ImGui::SliderInt("##factor", &at, -kSteps, kSteps, "") && at != std::lround(now)) {
    ui.want(fmt::format("mesh.bandwidth {} {:.6g}", name, std::pow(kStep, at)));
  }
  ImGui::PopStyleVar();
  ui.probes.put_item("stretch." + name);
  // What the ends of the slider are.
  text(ui, fmt::format("x {:.3g}", kLeastStretch), ui.theme.quiet);
  ImGui::SameLine();
  number_right(ui, fmt::format("x {:.3g}", kMostStretch), ui.theme.quiet);
  ImGui::PopID();
}

}  // namespace

void draw_stretch(Ui& ui) {
  ui.links = true;
  const LinkStretch& stretch = ui.state.mesh.stretch;
  model_heading(ui, "Faster links", "what they are worth to this layout");
  if (stretch.factors.empty()) {
    return text(ui, "one GPU communicates with nobody", ui.theme.quiet);
  }
  for (std::size_t tier = 0; tier < stretch.factors.size(); ++tier) draw_link(ui, tier);
  const StepReport* const winner = ui.state.winner ? &*ui.state.winner : nullptr;
  const std::vector<std::string> words =
      stretch_words(ui.state.plan, ui.state.report, stretch, winner);
  const bool better = stretch.report && stretch.report->step_time <= ui.state.report.step_time;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool plain = i > 0 || !stretch.any();
    ImGui::PushTextWrapPos(0);
    text(ui, words[i], plain ? ui.theme.quiet : better ? ui.theme.good : ui.theme.warning);
    ImGui::PopTextWrapPos();
    ui.probes.put_item(fmt::format("stretch.words.{}", i + 1));
    if (stretch.any() && ImGui::IsItemHovered()) {
      ImGui::SetTooltip("%s", stretch_reason(words[i]).c_str());
    }
  }
  if (!stretch.any()) return;
  if (ImGui::SmallButton("ask with these links")) ui.want("mesh.take");
  ui.probes.put_item("stretch.take");
  ImGui::SameLine();
  if (ImGui::SmallButton("as they are")) ui.want("mesh.reset");
  ui.probes.put_item("stretch.reset");
}

}  // namespace shardwise::view
