#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/drawing/span_columns.h"
#include "simulator/workload/paint.h"

namespace shardwise::sim {

/// Work that a timeline draws as one.
struct Block {
  double from = 0;  // seconds
  double to = 0;
  Paint paint = Paint::forward;
  std::int32_t microbatch = -1;
  std::int16_t chunk = 0;
};

/// "forward, micro-batch 3, chunk 1: 12.3 ms, from 1.20 s".
std::string words_of(const Block& block);

/// The blocks of a stream in time: neighbours of one kind and micro-batch are one where less than
/// `least_gap` seconds are between them.
std::vector<Block> blocks_of(const SpanColumns& spans, double least_gap);

}  // namespace shardwise::sim
