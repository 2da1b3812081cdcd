#include "simulator/drawing/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

namespace shardwise::sim {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

struct Vision {
  const char* name;
  Matrix seen;  // of linear red, green and blue
};
// Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
// Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (2009), the
// matrices of severity 1.0.
constexpr std::array<Vision, 4> kVisions = {{
    {"usual", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"protanopia",
     {{{0.152286, 1.052583, -0.204868},
       {0.114503, 0.786281, 0.099216},
       {-0.003882, -0.048116, 1.051998}}}},
    {"deuteranopia",
     {{{0.367322, 0.860646, -0.227968},
       {0.280085, 0.672501, 0.047413},
       {-0.011820, 0.042940, 0.968881}}}},
    {"tritanopia",
     {{{1.255528, -0.076749, -0.178779},
       {-0.078411, 0.930809, 0.147602},
       {0.004733, 0.691367, 0.303900}}}},
}};

// Between two colours of CIE L*a*b*: 2.3 are just noticed side by side (Mahy et al., 1994). Fields
// of a chart are small and apart.
constexpr double kLeastApart = 12;
// Source: WCAG 2.2, success criterion 1.4.3.
constexpr double kLeastContrast = 4.5;

Triple times(const Matrix& m, const Triple& v) {
  Triple made{};
  for (std::size_t i = 0; i < 3; ++i) made[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return made;
}

/// CIE L*a*b* of a colour as somebody sees it, white of D65. Source: IEC 61966-2-1 and CIE 15.
Triple lab(std::string_view colour, const Vision& vision) {
  Triple linear{};
  const std::array<int, 3> parts = channels(colour);
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = parts[i] / 255.0;
    linear[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  Triple seen = times(vision.seen, linear);
  for (double& each : seen) each = std::clamp(each, 0.0, 1.0);
  const Triple xyz = times({{{0.4124564, 0.3575761, 0.1804375},
                             {0.2126729, 0.7151522, 0.0721750},
                             {0.0193339, 0.1191920, 0.9503041}}},
                           seen);
  const auto f = [](double t) {
    constexpr double kDelta = 6.0 / 29;
    return t > kDelta * kDelta * kDelta ? std::cbrt(t) : t / (3 * kDelta * kDelta) + 4.0 / 29;
  };
  const double x = f(xyz[0] / 0.95047);
  const double y = f(xyz[1]);
  const double z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double colour_distance(std::string_view a, std::string_view b, const Vision& vision) {
  const Triple first = lab(a, vision);
  const Triple second = lab(b, vision);
  return std::hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
}

std::string_view on(Ground ground, const PaintStyle& paint) {
  return ground == Ground::light ? paint.light : paint.dark;
}

constexpr std::array<Ground, 2> kBoth = {Ground::light, Ground::dark};

TEST(Palette, MeasuresContrastAsWcagDoes) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(contrast("#ffffff", "#ffffff"), 1, 1e-9);
  // WebAIM's checker prints 4.48 for this grey on white and 4.54 for the next darker.
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.48, 0.005);
  EXPECT_NEAR(contrast("#ffffff", "#767676"), 4.54, 0.005);
}

TEST(Palette, CarriesReadableTextInEveryShade) {
  for (const Ground ground : kBoth) {
    for (std::size_t p = 0; p < kPaints.size(); ++p) {
      for (int chunk = 0; chunk < 8; ++chunk) {
        const std::string colour = shade(static_cast<Paint>(p), chunk, ground);
        EXPECT_GE(contrast(colour, ink_on(colour)), kLeastContrast)
            << kPaints[p].name << ", chunk " << chunk << ", " << colour;
      }
    }
  }
}

TEST(Palette, HasReadableTextOnEachPage) {
  for (std::size_t g = 0; g < kPages.size(); ++g) {
    const PageColours& page = kPages.at(g);
    for (const std::string_view under : {kGrounds.at(g), page.panel}) {
      for (const std::string_view text :
           {page.text, page.quiet, page.good, page.warning, page.bad, page.link}) {
        EXPECT_GE(contrast(text, under), kLeastContrast) << text << " on " << under;
      }
    }
  }
}

TEST(Palette, StaysApartForColourBlindReaders) {
  for (const Ground ground : kBoth) {
    for (const Vision& vision : kVisions) {
      for (std::size_t a = 0; a < kPaints.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          EXPECT_GE(colour_distance(on(ground, kPaints[a]), on(ground, kPaints[b]), vision),
                    kLeastApart)
              << vision.name << " sees " << kPaints[a].name << " as " << kPaints[b].name
              << (ground == Ground::light ? " on a light page" : " on a dark page");
        }
      }
    }
  }
}

// Red and green of one lightness are much alike without red or green cones, green and blue without
// blue ones.
TEST(Palette, SimulatesWhatColourBlindReadersMixUp) {
  const auto share = [](const char* a, const char* b, std::size_t vision) {
    return colour_distance(a, b, kVisions.at(vision)) / colour_distance(a, b, kVisions.front());
  };
  for (const std::size_t red_green : {1U, 2U}) {
    EXPECT_LT(share("#c0504d", "#7c8a3c", red_green), 0.5);
    EXPECT_GT(share("#1fa187", "#3a8fd0", red_green), 0.75);
  }
  EXPECT_GT(share("#c0504d", "#7c8a3c", 3), 0.9);
  EXPECT_LT(share("#1fa187", "#3a8fd0", 3), 0.25);
}

TEST(Heat, GoesOneWayInLightnessForEveryReaderAndHasReadableText) {
  for (const Ground ground : kBoth) {
    const double sign = ground == Ground::light ? -1 : 1;
    const auto& steps = kHeat[static_cast<std::size_t>(ground)];
    for (std::size_t i = 0; i < kHeatSteps; ++i) {
      EXPECT_GE(contrast(ink_on(steps[i]), steps[i]), kLeastContrast) << steps[i];
      if (i == 0) continue;
      for (const Vision& vision : kVisions) {
        const double lighter = lab(steps[i], vision)[0] - lab(steps[i - 1], vision)[0];
        EXPECT_GE(sign * lighter, 2.3) << steps[i] << ' ' << vision.name;
      }
    }
  }
}

TEST(Heat, IsTheNearestStepOfAShare) {
  const auto& steps = kHeat[static_cast<std::size_t>(Ground::dark)];
  EXPECT_EQ(heat(0, Ground::dark), steps.front());
  EXPECT_EQ(heat(1, Ground::dark), steps.back());
  EXPECT_EQ(heat(7, Ground::dark), steps.back());
  EXPECT_EQ(heat(0.5, Ground::dark), steps[4]);
  EXPECT_EQ(heat(0.13, Ground::dark), steps[1]);
}

TEST(Palette, HasAColourOfItsOwnForEachGroupOfMemory) {
  const std::set<Paint> paints(kGroupPaints.begin(), kGroupPaints.end());
  EXPECT_EQ(paints.size(), kMemoryGroups);
}

TEST(Palette, ShadesTowardsThePage) {
  for (const Ground ground : kBoth) {
    const std::string_view page = kGrounds[static_cast<std::size_t>(ground)];
    double before = 22;
    for (int chunk = 0; chunk < 4; ++chunk) {
      const double now = contrast(shade(Paint::forward, chunk, ground), page);
      EXPECT_LT(now, before) << chunk;
      before = now;
    }
    EXPECT_EQ(shade(Paint::forward, 0, ground), on(ground, kPaints[0]));
  }
}

}  // namespace
}  // namespace shardwise::sim
