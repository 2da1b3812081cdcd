#include "gui/draw/image.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace shardwise::view {
namespace {

std::uint32_t word(const std::string& from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(from[at + i]);
  return value;
}

/// A reader of what to_png() writes, from the specification alone.
Image from_png(const std::string& png) {
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  Image image;
  std::string packed;
  for (std::size_t at = 8; at < png.size();) {
    const std::uint32_t length = word(png, at);
    const std::string name = png.substr(at + 4, 4);
    const std::string bytes = png.substr(at + 8, length);
    const auto* checked = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    EXPECT_EQ(word(png, at + 8 + length), crc32(0, checked, length + 4)) << name;
    if (name == "IHDR") {
      image = Image(static_cast<int>(word(bytes, 0)), static_cast<int>(word(bytes, 4)), {0, 0, 0});
      EXPECT_EQ(bytes.substr(8), std::string("\x08\x02\x00\x00\x00", 5));
    }
    if (name == "IDAT") packed += bytes;
    at += 12 + length;
  }
  const std::size_t stride = 3 * static_cast<std::size_t>(image.width);
  std::vector<std::uint8_t> rows((stride + 1) * static_cast<std::size_t>(image.height));
  uLongf size = rows.size();
  EXPECT_EQ(
      uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
      Z_OK);
  EXPECT_EQ(size, rows.size());
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    const std::uint8_t filter = rows[y * (stride + 1)];
    for (std::size_t i = 0; i < stride; ++i) {
      std::uint8_t value = rows[y * (stride + 1) + 1 + i];
      if (filter == 1 && i >= 3)
        value = static_cast<std::uint8_t>(value + image.pixels[y * stride + i - 3]);
      if (filter == 2 && y > 0)
        value = static_cast<std::uint8_t>(value + image.pixels[(y - 1) * stride + i]);
      image.pixels[y * stride + i] = value;
    }
  }
  return image;
}

TEST(Png, ReadsBackAsThePicture) {
  Image image(61, 37, {9, 8, 7});
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < image.pixels.size(); i += 1 + i / 500) {
    state = state * 1'664'525 + 1'013'904'223;
    image.pixels[i] = static_cast<std::uint8_t>(state >> 24);
  }
  const Image read = from_png(to_png(image));
  EXPECT_EQ(read.width, image.width);
  EXPECT_EQ(read.height, image.height);
  EXPECT_EQ(read.pixels, image.pixels);
}

TEST(Png, HasEqualBytesForEqualPictures) {
  const Image image(20, 10, {1, 2, 3});
  EXPECT_EQ(to_png(image), to_png(Image(20, 10, {1, 2, 3})));
  EXPECT_NE(to_png(image), to_png(Image(20, 10, {1, 2, 4})));
}

}  // namespace
}  // namespace shardwise::view
