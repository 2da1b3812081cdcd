#pragma once

#include <cstdint>

namespace shardwise {

/// So many things of so many bytes: elements of a state, buffers, layers. Kept apart until a ledger
/// adds them up, so that a report can show both factors.
struct Amount {
  std::int64_t count = 0;
  std::int64_t bytes_each = 0;
  constexpr std::int64_t bytes() const { return count * bytes_each; }
};

}  // namespace shardwise
