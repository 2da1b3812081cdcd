#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardwise::view {

/// A picture of opaque pixels, row by row from the top: red, green, blue.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]

  Image() = default;
  Image(int columns, int rows, std::array<std::uint8_t, 3> colour);
  const std::uint8_t* at(int x, int y) const {
    return pixels.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                                static_cast<std::size_t>(x));
  }
  std::uint8_t* at(int x, int y) {
    return const_cast<std::uint8_t*>(static_cast<const Image*>(this)->at(x, y));  // NOLINT
  }
};

/// The bytes of a PNG file. Equal pictures have equal bytes under one version of zlib.
/// Source: W3C, "Portable Network Graphics (PNG) Specification (Third Edition)".
std::string to_png(const Image& image);

}  // namespace shardwise::view
