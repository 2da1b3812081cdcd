#include "executor/checkpoint/slice_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <span>
#include <utility>

#include "planner/spec/json/reader.h"

namespace shardwise::exec {
namespace {

// Of a tensor that several matrices are stored as: queries, keys and values are three.
constexpr std::size_t kMostPieces = 8;

/// The slices of a tensor, those of a part together.
struct SliceRange {
  std::int64_t part = kWholeTensor;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  friend auto operator<=>(const SliceRange&, const SliceRange&) = default;
};

/// Takes those of a part off the front of `ranges`, as long as one begins where another ends.
/// \returns elements that they cover
std::int64_t take_covered(std::span<const SliceRange>& ranges, std::int64_t part) {
  std::int64_t at = 0;
  while (!ranges.empty() && ranges.front().part == part && ranges.front().begin == at) {
    at += ranges.front().count;
    ranges = ranges.subspan(1);
  }
  return at;
}

/// What is missing of a tensor, or there twice; nothing where its slices are every element once.
std::string not_covered(const SavedTensor& tensor, std::int64_t elements,
                        std::span<const SliceRange> ranges) {
  const std::int64_t parts = tensor.cut.cut() ? tensor.cut.ways : 1;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t own = tensor.cut.cut() ? filled_part(tensor.cut, p) : elements;
    if (own == 0) break;  // nor have the parts behind it any
    const std::int64_t at = take_covered(ranges, tensor.cut.cut() ? p : kWholeTensor);
    if (at == own) continue;
    const std::string of = tensor.cut.cut() ? fmt::format(" of part {}", p) : "";
    return fmt::format("is not whole: element {} of {}{} is not once in the files", at, own, of);
  }
  if (ranges.empty()) return "";
  const SliceRange& more = ranges.front();
  const std::string of = more.part == kWholeTensor ? "" : fmt::format(" of part {}", more.part);
  return fmt::format("is not whole: elements from {} on{} are not once in the files", more.begin,
                     of);
}

}  // namespace

std::string unfit_cut(const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& row) {
  if (row.size() < 3 || row.size() > 2 + kMostPieces) {
    return fmt::format("is not dimension, parts and 1 to {} pieces", kMostPieces);
  }
  if (std::cmp_greater_equal(row[0], shape.size())) {
    return fmt::format("cuts dimension {} of {}", row[0], shape.size());
  }
  const std::int64_t ways = row[1];
  if (ways < 2)
    return fmt::format("has {} part{}, and a cut has 2 or more", ways, ways == 1 ? "" : "s");
  // Padded, every element has a number still.
  std::int64_t steps = 0;
  bool counted = true;
  for (const std::int64_t piece : std::span(row).subspan(2)) {
    if (piece == 0 || piece % ways != 0) {
      return fmt::format("has {} steps of a piece for {} parts", piece, ways);
    }
    counted = counted && !__builtin_add_overflow(steps, piece, &steps);
  }
  std::int64_t elements = steps;
  const auto dimension = static_cast<std::size_t>(row[0]);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return "cuts a tensor without elements";
    if (d == dimension) continue;
    counted = counted && !__builtin_mul_overflow(elements, shape[d], &elements);
  }
  if (!counted) return "has more elements than can be counted";
  const std::int64_t extent = shape[dimension];
  const bool pads = dimension == 0 && row.size() == 3 && steps > extent;
  if (steps != extent && !pads) {
    return fmt::format("has {} steps along a dimension of {}", steps, extent);
  }
  return "";
}

void check_cover(const Manifest& manifest, const std::string& file, Diagnostics& problems) {
  std::map<std::string, std::vector<SliceRange>> ranges;
  for (const SavedFile& each : manifest.files) {
    for (const SavedSlice& slice : each.slices) {
      ranges[slice.tensor].push_back({slice.part, slice.begin, slice.count});
    }
  }
  const auto fail = [&](const std::string& tensor, std::string message) {
    problems.push_back({file, 0, 0, json_pointer("/tensors", tensor), std::move(message), ""});
  };
  for (const SavedTensor& tensor : manifest.tensors) {
    std::int64_t elements = 1;
    bool counted = true;
    for (const std::int64_t length : tensor.shape) {
      counted = counted && !__builtin_mul_overflow(elements, length, &elements);
    }
    if (!counted) {
      fail(tensor.name, "has more elements than can be counted");
      return;
    }
    std::vector<SliceRange>& own = ranges[tensor.name];
    std::ranges::sort(own);
    const std::string wrong = not_covered(tensor, elements, own);
    if (!wrong.empty()) fail(tensor.name, wrong);
    ranges.erase(tensor.name);
  }
  for (const auto& extra : ranges) fail(extra.first, "is in a file, and no tensor of the manifest");
}

}  // namespace shardwise::exec
