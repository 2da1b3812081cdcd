#include "gui/draw/image.h"

#include <gtest/gtest.h>
#include <cstdint>
#include <string>

#include "tests/gui/png_reader.h"

namespace shardwise::view {
namespace {

TEST(Png, ReadsBackAsThePicture) {
  Image image(61, 37, {9, 8, 7});
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < image.pixels.size(); i += 1 + i / 500) {
    state = state * 1'664'525 + 1'013'904'223;
    image.pixels[i] = static_cast<std::uint8_t>(state >> 24);
  }
  const Image read = test::from_png(to_png(image));
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
