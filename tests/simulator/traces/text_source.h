#pragma once

#include <algorithm>
#include <string>

#include "simulator/traces/trace_reader.h"

namespace shardwise::sim {

inline constexpr double kMicrosecond = 1e-6;  // in seconds

/// A source of `text` that gives at most `piece` bytes at a time. \pre the text outlives it
inline ByteSource source_of(const std::string& text, std::size_t piece = 1 << 20) {
  return [&text, piece, at = std::size_t{0}](char* into, std::size_t room) mutable {
    const std::size_t count = text.copy(into, std::min(room, piece), at);
    at += count;
    return count;
  };
}

}  // namespace shardwise::sim
