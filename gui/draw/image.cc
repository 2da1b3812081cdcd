#include "gui/draw/image.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace shardwise::view {
namespace {

constexpr std::size_t kBytes = 3;  // of a pixel
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

using Row = std::vector<std::uint8_t>;

/// `row` less `by`, from byte `first` on; the bytes before stay.
void subtract(std::span<const std::uint8_t> row, std::span<const std::uint8_t> by,
              std::size_t first, Row& left) {
  for (std::size_t i = first; i < row.size(); ++i) {
    left[i] = static_cast<std::uint8_t>(row[i] - by[i - first]);
  }
}

/// How far bytes are from 0, all together.
std::int64_t sum_of(const Row& left) {
  std::int64_t sum = 0;
  for (const std::uint8_t byte : left) sum += std::abs(int{static_cast<std::int8_t>(byte)});
  return sum;
}

/// A row by the filter that leaves the least sum: that compresses best. Filter 0 subtracts nothing,
/// 1 the pixel to the left, 2 the row above.
/// \param left  of each filter: room for a row
void append_row(std::string& to, std::span<const std::uint8_t> row,
                std::span<const std::uint8_t> above, std::array<Row, 3>& left) {
  for (Row& each : left) each.assign(row.begin(), row.end());
  subtract(row, row, kBytes, left[1]);
  if (!above.empty()) subtract(row, above, 0, left[2]);
  std::array<std::int64_t, 3> sums{};
  for (std::size_t filter = 0; filter < left.size(); ++filter) sums[filter] = sum_of(left[filter]);
  const auto best = static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
  to.push_back(static_cast<char>(best));
  to.append(left[best].begin(), left[best].end());
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
  std::array<Row, 3> left;
  for (int y = 0; y < image.height; ++y) {
    const std::span<const std::uint8_t> row(image.at(0, y), length);
    append_row(rows, row,
               y == 0 ? std::span<const std::uint8_t>() : std::span(image.at(0, y - 1), length),
               left);
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
