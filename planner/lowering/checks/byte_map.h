#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace shardwise {

/// Bytes of a buffer, begin to end.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Values of the bytes of a buffer, kept for ranges that are apart from one another. A call takes
/// time in proportion to the ranges that it touches, and the logarithm of all.
template <class Value>
class ByteMap {
 public:
  /// Gives all of `bytes` one value.
  void set(const ByteRange& bytes, Value value) {
    erase(bytes);
    if (bytes.begin < bytes.end) parts_[bytes.begin] = {bytes.end, std::move(value)};
  }
  /// Takes the values of `bytes` away.
  void erase(const ByteRange& bytes) {
    if (bytes.begin >= bytes.end) return;
    split(bytes.begin);
    split(bytes.end);
    parts_.erase(parts_.lower_bound(bytes.begin), parts_.lower_bound(bytes.end));
  }
  /// Calls visit(range, value) for those of `bytes` that have a value, from low to high.
  template <class Visit>
  void visit(const ByteRange& bytes, const Visit& visit) const {
    if (bytes.begin >= bytes.end) return;
    auto at = parts_.upper_bound(bytes.begin);
    if (at != parts_.begin()) --at;
    for (; at != parts_.end() && at->first < bytes.end; ++at) {
      const ByteRange both = {std::max(at->first, bytes.begin),
                              std::min(at->second.end, bytes.end)};
      if (both.begin < both.end) visit(both, at->second.value);
    }
  }
  /// Calls change(value) for all of `bytes`; those that have no value get a new one first.
  template <class Change>
  void update(const ByteRange& bytes, const Change& change) {
    if (bytes.begin >= bytes.end) return;
    split(bytes.begin);
    split(bytes.end);
    std::int64_t from = bytes.begin;
    auto at = parts_.lower_bound(bytes.begin);
    while (from < bytes.end) {
      const bool there = at != parts_.end() && at->first == from;
      if (!there) {
        const std::int64_t end = at == parts_.end() ? bytes.end : std::min(at->first, bytes.end);
        at = parts_.emplace_hint(at, from, Part{end, Value()});
      }
      change(at->second.value);
      from = at->second.end;
      ++at;
    }
  }

 private:
  struct Part {
    std::int64_t end = 0;
    Value value;
  };

  /// Makes `at` the border of two ranges where it lies inside one.
  void split(std::int64_t at) {
    auto part = parts_.lower_bound(at);
    if (part == parts_.begin()) return;
    --part;
    if (part->second.end <= at) return;
    Part high = part->second;
    part->second.end = at;
    parts_.emplace_hint(std::next(part), at, std::move(high));
  }

  std::map<std::int64_t, Part> parts_;  // by where they begin
};

}  // namespace shardwise
