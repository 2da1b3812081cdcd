#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/checks/byte_map.h"

namespace shardwise {

/// Micro-batches whose sum bytes hold, both ends included. By default of none: weights, say.
struct Microbatches {
  std::int32_t first = -1;
  std::int32_t last = -1;

  bool none() const { return first < 0; }
  friend bool operator==(const Microbatches&, const Microbatches&) = default;
};

/// Content of bytes, as their writer said. -1: of none, or their writer did not know.
struct Content {
  std::int32_t unit = -1;   // parameters that are sharded together
  std::int32_t layer = -1;  // whose own they are
  Microbatches microbatches;
};

/// Bytes that are written in a buffer.
class WrittenBytes {
 public:
  struct Part {
    ByteRange at;
    Content is;
  };

  void add(const ByteRange& bytes, const Content& content);
  void remove(const ByteRange& bytes);
  /// Whether all of `bytes` are written, and what of them has a unit or a layer has these.
  bool has(const ByteRange& bytes, std::int32_t unit, std::int32_t layer) const;
  /// Those of `bytes` that are written, from low to high.
  std::vector<Part> in(const ByteRange& bytes) const;

 private:
  ByteMap<Content> parts_;
};

}  // namespace shardwise
