#include "tests/gui/png_reader.h"

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace shardwise::test {
namespace {

std::uint32_t word(const std::string& from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<std::uint8_t>(from.at(at + i));
  return value;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("no picture of ours: ") + what);
}

}  // namespace

view::Image from_png(const std::string& png) {
  require(png.substr(0, 8) == "\x89PNG\r\n\x1a\n", "signature");
  view::Image image;
  std::string packed;
  for (std::size_t at = 8; at < png.size();) {
    const std::uint32_t length = word(png, at);
    const std::string name = png.substr(at + 4, 4);
    const std::string bytes = png.substr(at + 8, length);
    const auto* checked = reinterpret_cast<const Bytef*>(png.data() + at + 4);  // NOLINT
    require(word(png, at + 8 + length) == crc32(0, checked, length + 4), "checksum");
    if (name == "IHDR") {
      image = view::Image(static_cast<int>(word(bytes, 0)), static_cast<int>(word(bytes, 4)),
                          {0, 0, 0});
      require(bytes.substr(8) == std::string("\x08\x02\x00\x00\x00", 5), "header");
    }
    if (name == "IDAT") packed += bytes;
    at += 12 + length;
  }
  const std::size_t stride = 3 * static_cast<std::size_t>(image.width);
  std::vector<std::uint8_t> rows((stride + 1) * static_cast<std::size_t>(image.height));
  uLongf size = rows.size();
  const auto* from = reinterpret_cast<const Bytef*>(packed.data());  // NOLINT
  require(uncompress(rows.data(), &size, from, packed.size()) == Z_OK && size == rows.size(),
          "pixels");
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y) {
    const std::uint8_t filter = rows[y * (stride + 1)];
    for (std::size_t i = 0; i < stride; ++i) {
      int value = rows[y * (stride + 1) + 1 + i];
      if (filter == 1 && i >= 3) value += image.pixels[y * stride + i - 3];
      if (filter == 2 && y > 0) value += image.pixels[(y - 1) * stride + i];
      image.pixels[y * stride + i] = static_cast<std::uint8_t>(value);
    }
  }
  return image;
}

}  // namespace shardwise::test
