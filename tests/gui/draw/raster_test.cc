#include "gui/draw/raster.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardwise::view {
namespace {

constexpr ImU32 kWhite = IM_COL32(255, 255, 255, 255);

/// Triangles drawn by hand over black, 8 by 8 pixels, with a texture of one texel or of the bytes
/// given.
class Raster : public testing::Test {
 protected:
  Raster() { texture(ImTextureFormat_Alpha8, 1, {255}); }

  void texture(ImTextureFormat format, int width, const std::vector<std::uint8_t>& bytes) {
    const int texel = format == ImTextureFormat_Alpha8 ? 1 : 4;
    texture_.DestroyPixels();
    texture_.Status = ImTextureStatus_Destroyed;
    texture_.Create(format, width, static_cast<int>(bytes.size()) / width / texel);
    std::ranges::copy(bytes, texture_.Pixels);
  }

  void triangle(std::array<ImVec2, 3> corners, std::array<ImU32, 3> colours,
                std::array<ImVec2, 3> uv = {ImVec2(0.5F, 0.5F), {0.5F, 0.5F}, {0.5F, 0.5F}}) {
    for (std::size_t i = 0; i < 3; ++i) {
      list_.IdxBuffer.push_back(static_cast<ImDrawIdx>(list_.VtxBuffer.Size));
      list_.VtxBuffer.push_back({corners[i], uv[i], colours[i]});
    }
  }
  void rectangle(ImVec2 least, ImVec2 most, ImU32 colour) {
    triangle({least, {most.x, least.y}, most}, {colour, colour, colour});
    triangle({least, most, {least.x, most.y}}, {colour, colour, colour});
  }

  Image draw(ImVec4 clip = {0, 0, 8, 8}, float scale = 1) {
    ImDrawCmd command;
    command.ClipRect = clip;
    command.TexRef._TexData = &texture_;
    command.ElemCount = static_cast<unsigned>(list_.IdxBuffer.Size);
    list_.CmdBuffer.clear();
    list_.CmdBuffer.push_back(command);
    ImDrawData data;
    data.DisplaySize = {8, 8};
    data.FramebufferScale = {scale, scale};
    data.CmdLists.push_back(&list_);
    return rasterise(data, {0, 0, 0});
  }

  /// The pixels that are not black, as a picture of letters.
  static std::vector<std::string> shape(const Image& image) {
    std::vector<std::string> rows;
    for (int y = 0; y < image.height; ++y) {
      std::string& row = rows.emplace_back();
      for (int x = 0; x < image.width; ++x) row += image.at(x, y)[0] > 0 ? '#' : '.';
    }
    return rows;
  }

  ImTextureData texture_;
  ImDrawList list_{nullptr};
};

TEST_F(Raster, FillsPixelsWhoseCentreIsInside) {
  triangle({ImVec2(0, 0), {8, 0}, {0, 8}}, {kWhite, kWhite, kWhite});
  // The centre of pixel (x, y) is inside where x + y + 1 < 8; on the long edge, which is neither
  // top nor left, it is outside.
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      EXPECT_EQ(draw().at(x, y)[0], x + y + 1 < 8 ? 255 : 0) << x << " " << y;
    }
  }
}

TEST_F(Raster, TrianglesThatShareAnEdgeFillEachPixelOnce) {
  const ImU32 half = IM_COL32(255, 255, 255, 128);
  triangle({ImVec2(0, 0), {8, 0}, {8, 8}}, {half, half, half});
  triangle({ImVec2(0, 0), {8, 8}, {0, 8}}, {half, half, half});
  const Image image = draw();
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) EXPECT_EQ(image.at(x, y)[0], 128) << x << " " << y;
  }
}

TEST_F(Raster, OwnsTopAndLeftEdgesThatRunThroughCentres) {
  rectangle({1.5F, 1.5F}, {4.5F, 3.5F}, kWhite);
  EXPECT_EQ(shape(draw()),
            (std::vector<std::string>{"........", ".###....", ".###....", "........", "........",
                                      "........", "........", "........"}));
}

TEST_F(Raster, DrawsATriangleWhicheverWayRoundItIs) {
  triangle({ImVec2(0, 0), {8, 0}, {0, 8}}, {kWhite, kWhite, kWhite});
  const Image one = draw();
  list_.VtxBuffer.clear();
  list_.IdxBuffer.clear();
  triangle({ImVec2(0, 0), {0, 8}, {8, 0}}, {kWhite, kWhite, kWhite});
  EXPECT_EQ(one.pixels, draw().pixels);
}

TEST_F(Raster, KeepsInsideTheClipRectangle) {
  rectangle({-100, -100}, {100, 100}, kWhite);
  EXPECT_EQ(shape(draw({2, 3, 5, 6})),
            (std::vector<std::string>{"........", "........", "........", "..###...", "..###...",
                                      "..###...", "........", "........"}));
  EXPECT_EQ(draw({20, 20, 30, 30}).pixels, Image(8, 8, {0, 0, 0}).pixels);
}

TEST_F(Raster, BlendsByAlpha) {
  rectangle({0, 0}, {8, 8}, IM_COL32(200, 100, 50, 255));
  rectangle({0, 0}, {8, 8}, IM_COL32(0, 100, 255, 51));
  const Image image = draw();
  EXPECT_EQ(image.at(3, 3)[0], 160);  // 0.2 x 0 + 0.8 x 200
  EXPECT_EQ(image.at(3, 3)[1], 100);
  EXPECT_EQ(image.at(3, 3)[2], 91);  // 0.2 x 255 + 0.8 x 50
}

TEST_F(Raster, InterpolatesColours) {
  const ImU32 black = IM_COL32(0, 0, 0, 255);
  triangle({ImVec2(0, 0), {8, 0}, {8, 8}}, {black, kWhite, kWhite});
  triangle({ImVec2(0, 0), {8, 8}, {0, 8}}, {black, kWhite, black});
  const Image image = draw();
  for (int x = 0; x < 8; ++x) {
    EXPECT_NEAR(image.at(x, 2)[0], 255 * (x + 0.5) / 8, 0.51) << x;
  }
}

TEST_F(Raster, FiltersTexelsBilinearly) {
  texture(ImTextureFormat_Alpha8, 2, {0, 255});
  // Texel centres are at u = 0.25 and 0.75; the picture spans u = 0 to 1.
  triangle({ImVec2(0, 0), {8, 0}, {8, 8}}, {kWhite, kWhite, kWhite},
           {ImVec2(0, 0), {1, 0}, {1, 1}});
  triangle({ImVec2(0, 0), {8, 8}, {0, 8}}, {kWhite, kWhite, kWhite},
           {ImVec2(0, 0), {1, 1}, {0, 1}});
  const Image image = draw();
  const std::array<double, 8> expected = {0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1};
  for (int x = 0; x < 8; ++x) {
    EXPECT_NEAR(image.at(x, 4)[0], 255 * expected[static_cast<std::size_t>(x)], 1) << x;
  }
}

TEST_F(Raster, TakesColoursOfATextureThatHasThem) {
  texture(ImTextureFormat_RGBA32, 1, {255, 0, 128, 255});
  rectangle({0, 0}, {8, 8}, IM_COL32(255, 255, 128, 255));
  const Image image = draw();
  EXPECT_EQ(image.at(4, 4)[0], 255);
  EXPECT_EQ(image.at(4, 4)[1], 0);
  EXPECT_EQ(image.at(4, 4)[2], 64);
}

TEST_F(Raster, DrawsMorePixelsOfADenserDisplay) {
  rectangle({1, 1}, {2, 2}, kWhite);
  const Image image = draw({0, 0, 8, 8}, 2);
  EXPECT_EQ(image.width, 16);
  int lit = 0;
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 16; ++x) lit += image.at(x, y)[0] > 0 ? 1 : 0;
  }
  EXPECT_EQ(lit, 4);
  EXPECT_EQ(image.at(2, 2)[0], 255);
  EXPECT_EQ(image.at(3, 3)[0], 255);
}

TEST_F(Raster, DrawsNothingOfTrianglesWithoutAreaOrFarAway) {
  triangle({ImVec2(1, 1), {4, 4}, {7, 7}}, {kWhite, kWhite, kWhite});
  triangle({ImVec2(-1e6F, -1e6F), {-1e6F, -9e5F}, {-9e5F, -1e6F}}, {kWhite, kWhite, kWhite});
  EXPECT_EQ(draw().pixels, Image(8, 8, {0, 0, 0}).pixels);
}

}  // namespace
}  // namespace shardwise::view
