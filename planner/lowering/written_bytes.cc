#include "planner/lowering/written_bytes.h"

#include <algorithm>
#include <utility>

namespace shardwise {
namespace {

ByteRange overlap(const ByteRange& a, const ByteRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

bool differ(std::int32_t a, std::int32_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace

void WrittenBytes::add(const ByteRange& bytes, const Content& content) {
  remove(bytes);
  if (bytes.begin < bytes.end) parts_.push_back({bytes, content});
}

void WrittenBytes::remove(const ByteRange& bytes) {
  std::vector<Part> left;
  for (const auto& [at, is] : parts_) {
    const ByteRange low = {at.begin, std::min(at.end, bytes.begin)};
    const ByteRange high = {std::max(at.begin, bytes.end), at.end};
    if (low.begin < low.end) left.push_back({low, is});
    if (high.begin < high.end) left.push_back({high, is});
  }
  parts_ = std::move(left);
}

bool WrittenBytes::has(const ByteRange& bytes, std::int32_t unit, std::int32_t layer) const {
  std::int64_t missing = bytes.end - bytes.begin;
  for (const Part& part : in(bytes)) {
    if (differ(unit, part.is.unit) || differ(layer, part.is.layer)) continue;
    missing -= part.at.end - part.at.begin;
  }
  return missing <= 0;
}

std::vector<WrittenBytes::Part> WrittenBytes::in(const ByteRange& bytes) const {
  std::vector<Part> met;
  for (const auto& [at, is] : parts_) {
    const ByteRange both = overlap(at, bytes);
    if (both.begin < both.end) met.push_back({both, is});
  }
  return met;
}

}  // namespace shardwise
