#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/report/memory_labels.h"
#include "simulator/workload/paint.h"

namespace shardwise::sim {

/// The colours of every picture: `simulate --svg`, the report, the viewer. They stay apart for
/// readers who are colour-blind (tests/simulator/drawing/palette_test.cc).

/// A colour as "#3b76b5" on a light and on a dark page.
struct PaintStyle {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};
inline constexpr std::array<PaintStyle, 10> kPaints = {
    {{"forward", "#2388ce", "#529ef1"},
     {"backward", "#d5732b", "#e38f3c"},
     {"weight gradients", "#eba257", "#f9b46a"},
     {"recompute", "#98caea", "#9cdaf5"},
     {"optimizer", "#279f5d", "#64a868"},
     {"parameter gather", "#017970", "#158c7f"},
     {"gradient reduction", "#9952a1", "#b16cb5"},
     {"point-to-point messages", "#929595", "#a4a5ab"},
     {"tensor, context or expert parallel communication", "#deb636", "#e7c94f"},
     {"copies", "#c38ebb", "#cf98ca"}}};

/// By MemoryGroup; what a group and an operation have in common has one colour.
inline constexpr std::array<Paint, kMemoryGroups> kGroupPaints = {
    Paint::forward, Paint::reduce, Paint::optimizer, Paint::backward,
    Paint::gather,  Paint::layer,  Paint::message};
constexpr const PaintStyle& paint_of(MemoryGroup group) {
  return kPaints[static_cast<std::size_t>(kGroupPaints[static_cast<std::size_t>(group)])];
}

enum class Ground : std::uint8_t { light, dark };
/// The page that pictures lie on.
inline constexpr std::array<std::string_view, 2> kGrounds = {"#ffffff", "#0d1117"};
/// Colours of a page beside paints.
struct PageColours {
  std::string_view panel;  // a field of its own
  std::string_view text;
  std::string_view quiet;  // text that people read second
  std::string_view line;
  std::string_view good;
  std::string_view warning;
  std::string_view bad;
  std::string_view link;  // what is chosen, and the way to it
};
inline constexpr std::array<PageColours, 2> kPages = {{
    {"#f6f8fa", "#1f2933", "#52606d", "#dfe4ea", "#1a7f37", "#8a5a00", "#c62828", "#0a64ad"},
    {"#161b22", "#e6edf3", "#a3adb8", "#2b333d", "#4ac26b", "#e0a93b", "#ff7b72", "#6cb6ff"},
}};
/// Text on a colour: the one that contrasts more.
inline constexpr std::string_view kDarkInk = "#0b0f14";
inline constexpr std::string_view kLightInk = "#ffffff";

/// Steps of a map's colours from the least to the best, by ground: away from the page's lightness
/// at every step, whatever colours a reader sees.
inline constexpr std::size_t kHeatSteps = 9;
inline constexpr std::array<std::array<std::string_view, kHeatSteps>, 2> kHeat = {{
    {"#f1f5f0", "#d6e9e4", "#bbddd7", "#9ccdce", "#77b6ca", "#529ec5", "#3f88b6", "#286091",
     "#173f73"},
    {"#1a2a3c", "#1c3e5b", "#1e527a", "#226891", "#31899c", "#379d9e", "#5fb496", "#97ca88",
     "#cfe07a"},
}};
/// Colour of a share from 0 to 1.
std::string_view heat(double share, Ground ground);

/// Red, green and blue of "#3b76b5", 0 to 255.
std::array<int, 3> channels(std::string_view colour);

/// Between 1 and 21. Source: WCAG 2.2, "contrast ratio" and "relative luminance".
double contrast(std::string_view first, std::string_view second);

/// kDarkInk or kLightInk.
std::string_view ink_on(std::string_view colour);

/// A colour of which `share` is drawn over another: "#3b76b5".
std::string mixed(std::string_view colour, double share, std::string_view over);

/// A paint on a page, nearer to the page's colour for later chunks of the model, so that an
/// interleaved schedule can be read.
std::string shade(Paint paint, int chunk, Ground ground);

}  // namespace shardwise::sim
