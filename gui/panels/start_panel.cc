// What people see who gave nothing: the catalogue's models and clusters, and the answer at once.
#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/models/explore/explore_model.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::view {
namespace {

constexpr float kStartWidth = 940;
constexpr float kStartHeight = 620;

/// Numbers of GPUs that the cluster comes in.
std::vector<std::int64_t> counts_of(const AppState& state) {
  for (const SliderSection& section : state.sliders) {
    for (const Slider& slider : section.sliders) {
      if (slider.id == "gpus") return slider.steps;
    }
  }
  return {};
}

/// A list of the catalogue, which is read once it is seen.
void draw_choices(Ui& ui, const char* kind, const char* title, const std::string& now,
                  const std::vector<Choice>& choices, ImVec2 size) {
  if (ImGui::BeginChild(kind, size)) {
    ImGui::PushFont(ui.fonts.heading, 13);
    text(ui, title, ui.theme.accent);
    ImGui::PopFont();
    if (ImGui::BeginChild("list")) {
      if (choices.empty()) text(ui, "reading the catalogue …", ui.theme.quiet);
      for (const Choice& each : choices) {
        ImGui::PushID(each.name.c_str());
        const ImVec2 at = ImGui::GetCursorPos();
        const bool chosen = each.name == now;
        const float high = 2 * ImGui::GetTextLineHeight();
        if (ImGui::Selectable("##choice", chosen, 0, {0, high})) {
          ui.want(fmt::format("question.{} {}", kind, each.name));
        }
        if (chosen && ImGui::IsWindowAppearing()) ImGui::SetScrollHereY();
        ui.probes.put_item(fmt::format("start.{}.{}", kind, each.name));
        const ImVec2 next = ImGui::GetCursorPos();
        ImGui::SetCursorPos(at);
        ImGui::PushStyleVarY(ImGuiStyleVar_ItemSpacing, 0);
        fitting_text(ui, each.name, ui.theme.text);
        fitting_text(ui, each.line, ui.theme.quiet);
        ImGui::PopStyleVar();
        ImGui::SetCursorPos(next);
        ImGui::PopID();
      }
      ImGui::Dummy({0, 0});
    }
    ImGui::EndChild();
  }
  ImGui::EndChild();
}

void draw_gpu_counts(Ui& ui) {
  ImGui::PushFont(ui.fonts.heading, 13);
  text(ui, "GPUs", ui.theme.accent);
  ImGui::PopFont();
  const float edge = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  float after = 0;
  for (const std::int64_t count : counts_of(ui.state)) {
    const std::string words = fmt::format("{}", count);
    const float width = ImGui::CalcTextSize(words.c_str()).x +
                        2 * ImGui::GetStyle().FramePadding.x + ImGui::GetStyle().ItemSpacing.x;
    if (after > 0 && after + width < edge) ImGui::SameLine();
    if (toggle(ui, "start.gpus." + words, words, ui.state.plan.cluster.gpus == count)) {
      ui.want("question.set gpus " + words);
    }
    after = ImGui::GetItemRectMax().x;
  }
}

/// The best layout of what is chosen.
void draw_answer(Ui& ui) {
  const AppState& state = ui.state;
  ImGui::PushFont(ui.fonts.heading, 13);
  text(ui, "The answer", ui.theme.accent);
  ImGui::PopFont();
  ImGui::PushTextWrapPos(0);
  text(ui,
       fmt::format("{} on {} GPUs of {}", shown(state.plan.model.name),
                   format_count(state.plan.cluster.gpus), shown(state.plan.cluster.name)),
       ui.theme.text);
  const StepReport& report = state.best_report();
  const Fit fit = report.verdict.fit;
  text(ui,
       fmt::format("{}: {} a step, MFU {}, {} a GPU", shown(state.plan.engine.name),
                   format_seconds(report.step_time), format_percent(report.mfu),
                   format_bytes(report.verdict.point)),
       fit == Fit::fits      ? ui.theme.good
       : fit == Fit::at_risk ? ui.theme.warning
                             : ui.theme.bad);
  ui.probes.put_item("start.answer");
  if (fit == Fit::does_not_fit) text(ui, "no layout fits: take more GPUs", ui.theme.bad);
  text(ui, known_text(state.answer, state.current()), ui.theme.quiet);
  if (state.compare.other != nullptr) {
    text(ui, fmt::format("compared with {}: choose what ran it", shown(state.compare.other->file)),
         ui.theme.warning);
  }
  if (!state.message.empty()) text(ui, state.message, ui.theme.warning);
  ImGui::PopTextWrapPos();
}

}  // namespace

void draw_start(Ui& ui) {
  if (!ui.state.start_open) return;
  ui.menus = true;
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const ImVec2 size(std::min(ui.units(kStartWidth), viewport->WorkSize.x - ui.units(40)),
                    std::min(ui.units(kStartHeight), viewport->WorkSize.y - ui.units(40)));
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2,
                           viewport->WorkPos.y + viewport->WorkSize.y / 2},
                          ImGuiCond_Always, {0.5F, 0.5F});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("start", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar();
  if (!ui.state.palette_open) ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  heading(ui, "What do you train, and on what?");
  const Catalogue& catalogue = ui.state.exploring.catalogue;
  const float height = ImGui::GetContentRegionAvail().y - 2 * ImGui::GetFrameHeightWithSpacing();
  const float third = (ImGui::GetContentRegionAvail().x - 2 * ui.units(16)) / 3;
  draw_choices(ui, "model", "Model", ui.state.plan.model.name, catalogue.models, {third, height});
  ImGui::SameLine(0, ui.units(16));
  draw_choices(ui, "cluster", "Cluster", ui.state.plan.cluster.name, catalogue.clusters,
               {third, height});
  ImGui::SameLine(0, ui.units(16));
  if (ImGui::BeginChild("rest", {third, height})) {
    draw_gpu_counts(ui);
    ImGui::Dummy({0, ui.units(10)});
    draw_answer(ui);
  }
  ImGui::EndChild();
  if (ImGui::Button("Show the layouts")) ui.want("app.close");
  ui.probes.put_item("start.show");
  ImGui::SameLine();
  fitting_text(ui, "or drop a plan, a page, a report or a trace here (Ctrl+O opens one)",
               ui.theme.quiet);
  ImGui::End();
}

}  // namespace shardwise::view
