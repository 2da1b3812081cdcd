#include "gui/draw/theme.h"

#include <gtest/gtest.h>

#include "simulator/drawing/palette.h"

namespace shardwise::view {
namespace {

/// WCAG 2.2, success criterion 1.4.3.
constexpr double kReadable = 4.5;

TEST(Theme, TextContrastsWithEveryGroundThatItStandsOn) {
  for (const bool dark : {false, true}) {
    const Theme& theme = theme_of(dark);
    for (const std::string_view ground : {theme.panel, theme.page}) {
      for (const std::string_view ink :
           {theme.text, theme.quiet, theme.accent, theme.good, theme.warning, theme.bad}) {
        EXPECT_GE(sim::contrast(ink, ground), kReadable) << ink << " on " << ground;
      }
    }
    for (const std::string_view ground : {theme.raised, theme.hovered, theme.selected}) {
      EXPECT_GE(sim::contrast(theme.text, ground), kReadable) << theme.text << " on " << ground;
    }
    EXPECT_GE(sim::contrast(theme.quiet, theme.raised), kReadable);
    EXPECT_GE(sim::contrast(theme.warning, theme.selected), kReadable);
    EXPECT_GE(sim::contrast(theme.bad, theme.selected), kReadable);
  }
}

TEST(Theme, PanelsAreThePageOfPictures) {
  EXPECT_EQ(theme_of(true).panel, sim::kGrounds[static_cast<std::size_t>(sim::Ground::dark)]);
  EXPECT_EQ(theme_of(false).panel, sim::kGrounds[static_cast<std::size_t>(sim::Ground::light)]);
}

TEST(Colour, IsReadAsWritten) {
  EXPECT_EQ(colour("#0d1117"), IM_COL32(0x0d, 0x11, 0x17, 255));
  EXPECT_EQ(colour("#ffffff", 0.5F), IM_COL32(255, 255, 255, 128));
}

}  // namespace
}  // namespace shardwise::view
