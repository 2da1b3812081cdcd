#include "simulator/drawing/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shardwise::sim {
namespace {

constexpr double kChunkStep = 0.2;    // of the colour, which each later chunk gives to the page
constexpr double kLeastShare = 0.55;  // that is left of it

double relative_luminance(std::string_view colour) {
  constexpr std::array<double, 3> kWeights = {0.2126, 0.7152, 0.0722};
  const std::array<int, 3> parts = channels(colour);
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double c = parts[i] / 255.0;
    sum += kWeights[i] * (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

}  // namespace

std::array<int, 3> channels(std::string_view colour) {
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* first = colour.data() + 1 + 2 * i;
    std::from_chars(first, first + 2, parts[i], 16);
  }
  return parts;
}

double contrast(std::string_view first, std::string_view second) {
  const double a = relative_luminance(first);
  const double b = relative_luminance(second);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

std::string_view ink_on(std::string_view colour) {
  return contrast(kDarkInk, colour) >= contrast(kLightInk, colour) ? kDarkInk : kLightInk;
}

std::string_view heat(double share, Ground ground) {
  const double last = kHeatSteps - 1;
  const auto step = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * last));
  return kHeat[static_cast<std::size_t>(ground)][step];
}

std::string mixed(std::string_view colour, double share, std::string_view over) {
  std::array<int, 3> parts = channels(colour);
  const std::array<int, 3> below = channels(over);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = static_cast<int>(std::lround(below[i] - share * (below[i] - parts[i])));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", parts[0], parts[1], parts[2]);
}

std::string shade(Paint paint, int chunk, Ground ground) {
  const PaintStyle& style = kPaints[static_cast<std::size_t>(paint)];
  return mixed(ground == Ground::light ? style.light : style.dark,
               std::max(kLeastShare, 1 - kChunkStep * chunk),
               kGrounds[static_cast<std::size_t>(ground)]);
}

}  // namespace shardwise::sim
