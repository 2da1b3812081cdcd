#include "gui/draw/image.h"

#include <zlib.h>

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>

namespace shardwise::view {
namespace {

constexpr int kBytes = 3;  // of a pixel
/// Of compression. Level 9 takes eight times as long, and leaves 2 % less.
constexpr int kLevel = 6;

void append_word(std::string& to, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(word >> shift));
}

/// A chunk of the file: its length, name, bytes and checksum.
void append_chunk(std::string& to, std::string_view name, std::string_view bytes) {
  append_word(to, static_cast<std::uint32_t>(bytes.size()));
  const std::size_t begin = to.size();
  to += name;
  to += bytes;
  const auto* checked = reinterpret_cast<const Bytef*>(to.data() + begin);  // NOLINT
  append_word(to,
              static_cast<std::uint32_t>(crc32(0, checked, static_cast<uInt>(to.size() - begin))));
}

/// What is subtracted from a byte of a row: nothing (filter 0), the pixel to the left (1), or the
/// row above (2).
std::uint8_t predicted(int filter, std::span<const std::uint8_t> row,
                       std::span<const std::uint8_t> above, std::size_t i) {
  if (filter == 1) return i >= kBytes ? row[i - kBytes] : 0;
  return filter == 2 && !above.empty() ? above[i] : 0;
}

/// A row by the filter that leaves the least sum: that compresses best.
void append_row(std::string& to, std::span<const std::uint8_t> row,
                std::span<const std::uint8_t> above) {
  int best = 0;
  std::int64_t least = 0;
  for (int filter = 0; filter < 3; ++filter) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto left = static_cast<std::uint8_t>(row[i] - predicted(filter, row, above, i));
      sum += std::abs(static_cast<int>(static_cast<std::int8_t>(left)));
    }
    if (filter > 0 && sum >= least) continue;
    least = sum;
    best = filter;
  }
  to.push_back(static_cast<char>(best));
  const std::size_t begin = to.size();
  to.resize(begin + row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    to[begin + i] = static_cast<char>(row[i] - predicted(best, row, above, i));
  }
}

}  // namespace

Image::Image(int columns, int rows, std::array<std::uint8_t, 3> colour)
    : width(columns), height(rows) {
  const std::size_t count = static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows);
  pixels.reserve(kBytes * count);
  for (std::size_t i = 0; i < count; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
}

std::string to_png(const Image& image) {
  std::string rows;
  const std::size_t length = kBytes * static_cast<std::size_t>(image.width);
  rows.reserve((length + 1) * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    const std::span<const std::uint8_t> row(image.at(0, y), length);
    append_row(rows, row,
               y == 0 ? std::span<const std::uint8_t>() : std::span(image.at(0, y - 1), length));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,  // NOLINT
                             reinterpret_cast<const Bytef*>(rows.data()),     // NOLINT
                             static_cast<uLong>(rows.size()), kLevel);
  if (code != Z_OK) throw std::runtime_error("zlib could not compress a picture");
  packed.resize(size);

  std::string header;
  append_word(header, static_cast<std::uint32_t>(image.width));
  append_word(header, static_cast<std::uint32_t>(image.height));
  header += std::string_view("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB, no interlace
  std::string png("\x89PNG\r\n\x1a\n", 8);
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace shardwise::view
