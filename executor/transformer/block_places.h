#pragma once

#include <cstddef>

#include "executor/transformer/block_memory.h"

namespace shardwise::exec {

/// BlockOffsets in the device's memory.
struct BlockPlaces {
  BlockPlaces(const BlockOffsets& o, std::byte* memory)
      : attention_statistics(floats(memory + o.attention_statistics)),
        q_statistics(floats(memory + o.q_statistics)),
        k_statistics(floats(memory + o.k_statistics)),
        log_sums(floats(memory + o.log_sums)),
        mlp_statistics(floats(memory + o.mlp_statistics)),
        normed(memory + o.normed),
        queries(memory + o.queries),
        keys(memory + o.keys),
        qkv(memory + o.qkv),
        attended(memory + o.attended),
        middle(memory + o.middle),
        mlp_normed(memory + o.mlp_normed),
        up(memory + o.up),
        activated(memory + o.activated) {}

  /// Moves the tensors that operations make again. `memory` may be null where they make nothing.
  void take(const RecomputedOperations& again, const BlockOffsets& o, std::byte* memory) {
    if (again.attention_norm) {
      attention_statistics = floats(memory + o.attention_statistics);
      normed = memory + o.normed;
    }
    if (again.attention) {
      log_sums = floats(memory + o.log_sums);
      attended = memory + o.attended;
    }
    if (again.mlp_norm) {
      mlp_statistics = floats(memory + o.mlp_statistics);
      mlp_normed = memory + o.mlp_normed;
    }
    if (again.activation) activated = memory + o.activated;
  }

  float* attention_statistics;
  float* q_statistics;
  float* k_statistics;
  float* log_sums;
  float* mlp_statistics;
  std::byte* normed;
  std::byte* queries;
  std::byte* keys;
  std::byte* qkv;
  std::byte* attended;
  std::byte* middle;
  std::byte* mlp_normed;
  std::byte* up;
  std::byte* activated;
  // Tensor of all tokens, where the stream's are spread over ranks; else null.
  std::byte* gathered = nullptr;  // what projections read; backward also the stream's gradient
  std::byte* partial = nullptr;   // what the product that ends a half makes
  const std::byte* tables = nullptr;

 private:
  static float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }
};

/// Some columns of rows of tokens.
struct Columns {
  std::byte* data = nullptr;
  std::int64_t stride = 0;
};

}  // namespace shardwise::exec
