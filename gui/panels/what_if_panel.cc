#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "gui/models/explore/explore_model.h"
#include "gui/models/question/question_limits.h"
#include "gui/panels/panels.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::view {
namespace {

constexpr float kKnob = 6;    // its radius
constexpr float kTrack = 14;  // what of the height answers the pointer

/// A knob over the valid steps, each of them a notch.
void draw_track(Ui& ui, const Slider& slider, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::size_t last = slider.steps.size() - 1;
  ImGui::InvisibleButton("at", {width, ui.units(kTrack)});
  ui.probes.put_item("what_if." + slider.id);
  const float from = at.x + ui.units(kKnob);
  const float span = width - 2 * ui.units(kKnob);
  const float middle = std::floor(at.y + ui.units(kTrack) / 2);
  const auto x = [&](std::size_t step) {
    return from +
           (last > 0 ? span * static_cast<float>(step) / static_cast<float>(last) : span / 2);
  };
  const bool moves = last > 0 && ui.state.exploring.limits.lock_of(slider.id) == nullptr;
  const bool held = ImGui::IsItemActive() && moves;
  if (held) {
    const float share = std::clamp((ImGui::GetMousePos().x - from) / span, 0.0F, 1.0F);
    const auto step = static_cast<std::size_t>(std::lround(share * static_cast<float>(last)));
    if (step != slider.at) {
      ui.want(fmt::format("question.set {} {}", slider.id, slider.texts[step]));
    }
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float thick = ui.units(2);
  const float knob = x(slider.at);
  list.AddRectFilled({from, middle - thick}, {from + span, middle + thick}, ui.ink(ui.theme.raised),
                     thick);
  const ImU32 ink = ui.ink(moves ? ui.theme.accent : ui.theme.quiet);
  if (last > 0) list.AddRectFilled({from, middle - thick}, {knob, middle + thick}, ink, thick);
  constexpr std::size_t kMostNotches = 24;
  for (std::size_t step = 0; last > 0 && last < kMostNotches && step <= last; ++step) {
    list.AddCircleFilled({x(step), middle}, ui.units(1.6F),
                         step <= slider.at ? ink : ui.ink(ui.theme.hovered));
  }
  const float radius = ui.units(held || ImGui::IsItemHovered() ? kKnob : kKnob - 1);
  list.AddCircleFilled({knob, middle}, radius, ink);
  if (held) list.AddCircle({knob, middle}, radius, ui.ink(ui.theme.text), 0, ui.units(1.5F));
}

/// A padlock: shut where the field is locked; open, and seen where the pointer is near, where not.
void draw_lock(Ui& ui, const Slider& slider, bool near) {
  const bool locked = ui.state.exploring.limits.lock_of(slider.id) != nullptr;
  const float side = ui.units(kTrack);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("lock", {side, side})) ui.want("question.lock " + slider.id);
  ui.probes.put_item("what_if." + slider.id + ".lock");
  ImGui::SetItemTooltip(locked ? "list all values again" : "list only layouts with this value");
  if (!locked && !near && !ImGui::IsItemHovered()) return;
  const ImU32 ink = ui.ink(locked ? ui.theme.accent : ui.theme.quiet);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float middle = at.x + side / 2;
  const float top = at.y + side * 0.48F;
  const float half = ui.units(4);
  list.AddRectFilled({middle - half, top}, {middle + half, top + ui.units(6)}, ink, ui.units(1));
  constexpr float kPi = std::numbers::pi_v<float>;
  const float bow = ui.units(2.6F);
  const float lift = locked ? 0 : ui.units(2);
  list.PathArcTo({middle, top - lift}, bow, kPi, locked ? 2 * kPi : 5.6F);
  list.PathStroke(ink, ui.units(1.4F));
}

void draw_slider(Ui& ui, const Slider& slider) {
  ImGui::PushID(slider.id.c_str());
  ImGui::PushStyleVarY(ImGuiStyleVar_ItemSpacing, ui.units(1));
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const float right = begin.x + ImGui::GetContentRegionAvail().x;
  wrapped_text(ui, slider.label, ui.theme.quiet, number_width(ui, slider.value) + ui.units(6));
  ImGui::SameLine();
  number_right(ui, slider.value, ui.theme.text);
  ui.probes.put_item("what_if." + slider.id + ".value");
  explain(ui, "field." + slider.id);
  if (ImGui::IsItemClicked()) ui.want(fmt::format("app.palette question.set {} ", slider.id));
  const bool lockable = slider.change == Change::layout;
  const float lock = lockable ? ui.units(kTrack + 4) : 0;
  draw_track(ui, slider, right - begin.x - lock);
  if (lockable) {
    const bool near = ImGui::IsWindowHovered() &&
                      ImGui::IsMouseHoveringRect(begin, {right, begin.y + ui.units(34)});
    ImGui::SameLine(0, ui.units(4));
    draw_lock(ui, slider, near);
  }
  ImGui::PopStyleVar();
  ImGui::Dummy({0, 0});
  ImGui::PopID();
}

/// A menu of the catalogue, which is read once one is open.
void draw_menu(Ui& ui, const char* kind, const std::string& now,
               const std::vector<Choice>& choices) {
  ImGui::PushID(kind);
  ImGui::SetNextItemWidth(-1);
  ImGui::PushStyleVarY(ImGuiStyleVar_FramePadding, ui.units(2));
  const float arrow = ImGui::GetFrameHeight() + 2 * ImGui::GetStyle().FramePadding.x;
  const std::string all = shown(now);
  const std::string preview = fitting(ui, all, ImGui::GetContentRegionAvail().x - arrow);
  const bool open = ImGui::BeginCombo("##menu", preview.c_str(), ImGuiComboFlags_HeightLarge);
  ImGui::PopStyleVar();
  ui.probes.put_item(fmt::format("what_if.{}", kind));
  if (!open && preview.size() != all.size()) ImGui::SetItemTooltip("%s", all.c_str());
  if (open) {
    ui.menus = true;
    if (choices.empty()) text(ui, "reading the catalogue …", ui.theme.quiet);
    for (const Choice& each : choices) {
      if (ImGui::Selectable(each.name.c_str(), each.name == now)) {
        ui.want(fmt::format("question.{} {}", kind, each.name));
      }
      ui.probes.put_item(fmt::format("what_if.{}.{}", kind, each.name));
      ImGui::SetItemTooltip("%s", each.line.c_str());
    }
    ImGui::EndCombo();
  }
  ImGui::PopID();
}

/// Locks of fields that have no slider; a click takes one away.
void draw_other_locks(Ui& ui) {
  for (const auto& lock : ui.state.exploring.limits.locks) {
    const std::string& field = lock.first;
    const std::string& value = lock.second;
    const bool slides = std::ranges::any_of(ui.state.sliders, [&](const SliderSection& each) {
      return std::ranges::find(each.sliders, field, &Slider::id) != each.sliders.end();
    });
    if (slides) continue;
    const std::string probe = fmt::format("what_if.{}.lock", field);
    if (toggle(ui, probe, fmt::format("only {} {}", field, value), true)) {
      ui.want("question.lock " + field);
    }
    ImGui::SetItemTooltip("list all values again");
  }
}

}  // namespace

void draw_what_if(Ui& ui) {
  heading(ui, "What if");
  const Catalogue& catalogue = ui.state.exploring.catalogue;
  draw_menu(ui, "model", ui.state.plan.model.name, catalogue.models);
  draw_menu(ui, "cluster", ui.state.plan.cluster.name, catalogue.clusters);
  draw_menu(ui, "engine", ui.state.plan.engine.name, catalogue.engines);
  draw_menu(ui, "objective", std::string(name_of(ui.state.exploring.limits.objective)),
            objective_choices());
  for (const SliderSection& section : ui.state.sliders) {
    ImGui::Dummy({0, 0});
    ImGui::PushFont(ui.fonts.heading, 13);
    text(ui, section.heading, ui.theme.accent);
    ImGui::PopFont();
    for (const Slider& slider : section.sliders) draw_slider(ui, slider);
  }
  draw_other_locks(ui);
  ImGui::PushTextWrapPos(0);
  for (const std::string& field : ui.state.exploring.limits.opened) {
    text(ui, "every value of " + field, ui.theme.quiet);
  }
  ImGui::Dummy({0, ui.units(2)});
  text(ui, known_text(ui.state.answer, ui.state.current()), ui.theme.quiet);
  ui.probes.put_item("what_if.known");
  ImGui::PopTextWrapPos();
}

}  // namespace shardwise::view
