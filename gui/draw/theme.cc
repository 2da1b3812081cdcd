#include "gui/draw/theme.h"

#include <implot.h>

#include <cmath>

namespace shardwise::view {
namespace {

constexpr Theme kDark = {sim::Ground::dark, "#05070a", "#0d1117", "#1c2430", "#2a3544",
                         "#222b37",         "#1b232e", "#e6edf3", "#94a1b2", "#4aa3df",
                         "#173a52",         "#56c271", "#e0ac3f", "#ff7b72"};
constexpr Theme kLight = {sim::Ground::light, "#e9edf2", "#ffffff", "#e4e9f0", "#d3dbe5",
                          "#d0d7e0",          "#e8ecf1", "#1a212b", "#586474", "#1a6cad",
                          "#cfe5f6",          "#176a2e", "#805300", "#b3221b"};

constexpr float kFontSize = 15;

void set_colours(const Theme& theme) {
  ImVec4* const colours = ImGui::GetStyle().Colors;
  const auto set = [&](std::initializer_list<int> which, std::string_view hex, float alpha = 1) {
    for (const int each : which) colours[each] = colour4(hex, alpha);
  };
  for (int i = 0; i < ImGuiCol_COUNT; ++i) colours[i] = colour4(theme.raised);
  set({ImGuiCol_Text, ImGuiCol_CheckMark, ImGuiCol_InputTextCursor}, theme.text);
  set({ImGuiCol_TextDisabled}, theme.quiet);
  set({ImGuiCol_WindowBg, ImGuiCol_PopupBg, ImGuiCol_TableHeaderBg}, theme.panel);
  set({ImGuiCol_ChildBg, ImGuiCol_TableRowBg, ImGuiCol_BorderShadow}, theme.panel, 0);
  set({ImGuiCol_TableRowBgAlt}, theme.raised, 0.28F);
  set({ImGuiCol_Border, ImGuiCol_TableBorderStrong, ImGuiCol_TableBorderLight,
       ImGuiCol_SeparatorHovered, ImGuiCol_TreeLines},
      theme.border);
  set({ImGuiCol_Separator, ImGuiCol_DockingEmptyBg, ImGuiCol_MenuBarBg}, theme.page);
  set({ImGuiCol_FrameBg, ImGuiCol_Button, ImGuiCol_Header}, theme.raised);
  set({ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive, ImGuiCol_ButtonHovered,
       ImGuiCol_ButtonActive, ImGuiCol_HeaderHovered, ImGuiCol_HeaderActive, ImGuiCol_ScrollbarGrab,
       ImGuiCol_ScrollbarGrabHovered, ImGuiCol_ScrollbarGrabActive},
      theme.hovered);
  set({ImGuiCol_ScrollbarBg}, theme.raised, 0.35F);
  set({ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive, ImGuiCol_SeparatorActive, ImGuiCol_NavCursor,
       ImGuiCol_DockingPreview, ImGuiCol_TextLink, ImGuiCol_DragDropTarget,
       ImGuiCol_TabSelectedOverline},
      theme.accent);
  set({ImGuiCol_TextSelectedBg}, theme.accent, 0.35F);
  set({ImGuiCol_TitleBg, ImGuiCol_TitleBgActive, ImGuiCol_TitleBgCollapsed, ImGuiCol_Tab,
       ImGuiCol_TabDimmed},
      theme.page);
  set({ImGuiCol_TabSelected, ImGuiCol_TabDimmedSelected}, theme.panel);
  set({ImGuiCol_ModalWindowDimBg}, theme.page, 0.6F);

  ImPlotStyle& plot = ImPlot::GetStyle();
  for (int i = 0; i < ImPlotCol_COUNT; ++i) plot.Colors[i] = colour4(theme.text);
  plot.Colors[ImPlotCol_FrameBg] = plot.Colors[ImPlotCol_PlotBg] = ImVec4();
  plot.Colors[ImPlotCol_PlotBorder] = ImVec4();
  plot.Colors[ImPlotCol_AxisBg] = ImVec4();
  plot.Colors[ImPlotCol_AxisBgHovered] = colour4(theme.raised);
  plot.Colors[ImPlotCol_AxisBgActive] = colour4(theme.hovered);
  plot.Colors[ImPlotCol_AxisGrid] = colour4(theme.grid);
  plot.Colors[ImPlotCol_AxisTick] = colour4(theme.grid);
  plot.Colors[ImPlotCol_AxisText] = colour4(theme.quiet);
  plot.Colors[ImPlotCol_Selection] = colour4(theme.accent);
  plot.Colors[ImPlotCol_LegendBg] = colour4(theme.panel);
  plot.Colors[ImPlotCol_LegendBorder] = colour4(theme.border);
  plot.UseLocalTime = false;
}

}  // namespace

std::string_view Theme::of(Tone tone) const {
  switch (tone) {
    case Tone::quiet:
      return quiet;
    case Tone::good:
      return good;
    case Tone::warning:
      return warning;
    case Tone::bad:
      return bad;
    case Tone::plain:
    case Tone::strong:
      break;
  }
  return text;
}

std::string_view Theme::of(sim::Paint paint) const {
  const sim::PaintStyle& style = sim::kPaints[static_cast<std::size_t>(paint)];
  return ground == sim::Ground::dark ? style.dark : style.light;
}

std::string_view Theme::of(MemoryGroup group) const {
  const sim::PaintStyle& style = sim::paint_of(group);
  return ground == sim::Ground::dark ? style.dark : style.light;
}

const Theme& theme_of(bool dark) { return dark ? kDark : kLight; }

ImU32 colour(std::string_view hex, float alpha) {
  const std::array<int, 3> parts = sim::channels(hex);
  return with_alpha(IM_COL32(parts[0], parts[1], parts[2], 0), alpha);
}

ImU32 with_alpha(ImU32 ink, float alpha) {
  const auto steps = static_cast<ImU32>(std::lround(255 * alpha));
  return (ink & ~IM_COL32_A_MASK) | (steps << IM_COL32_A_SHIFT);
}

ImVec4 colour4(std::string_view hex, float alpha) {
  const std::array<int, 3> parts = sim::channels(hex);
  constexpr float kWhole = 255;
  return {static_cast<float>(parts[0]) / kWhole, static_cast<float>(parts[1]) / kWhole,
          static_cast<float>(parts[2]) / kWhole, alpha};
}

void apply(const Theme& theme, float scale) {
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  style.WindowPadding = {14, 12};
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.PopupRounding = 6;
  style.FramePadding = {8, 4};
  style.FrameRounding = 4;
  style.GrabRounding = 4;
  style.GrabMinSize = 14;
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {6, 4};
  style.CellPadding = {6, 2};
  style.ScrollbarSize = 11;
  style.ScrollbarRounding = 6;
  style.DockingSeparatorSize = 8;
  style.TabRounding = 4;
  style.SeparatorTextBorderSize = 1;
  style.WindowMenuButtonPosition = ImGuiDir_None;
  style.ScaleAllSizes(scale);
  style.FontSizeBase = kFontSize;
  style.FontScaleMain = scale;
  ImPlotStyle& plot = ImPlot::GetStyle();
  plot = ImPlotStyle();
  plot.PlotPadding = {4 * scale, 4 * scale};
  plot.LabelPadding = {6 * scale, 4 * scale};
  plot.MajorTickLen = plot.MinorTickLen = {0, 0};
  plot.PlotMinSize = {60 * scale, 40 * scale};
  set_colours(theme);
}

}  // namespace shardwise::view
