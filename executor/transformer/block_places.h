#pragma once

#include <cstddef>

#include "executor/transformer/block_memory.h"

namespace shardwise::exec {

/// BlockOffsets in memory.
template <class E>
struct BlockPlaces {
  BlockPlaces(const BlockOffsets& o, std::byte* memory)
      : attention_statistics(floats(memory + o.attention_statistics)),
        q_statistics(floats(memory + o.q_statistics)),
        k_statistics(floats(memory + o.k_statistics)),
        log_sums(floats(memory + o.log_sums)),
        mlp_statistics(floats(memory + o.mlp_statistics)),
        normed(elements(memory + o.normed)),
        queries(elements(memory + o.queries)),
        keys(elements(memory + o.keys)),
        qkv(elements(memory + o.qkv)),
        attended(elements(memory + o.attended)),
        middle(elements(memory + o.middle)),
        mlp_normed(elements(memory + o.mlp_normed)),
        up(elements(memory + o.up)),
        activated(elements(memory + o.activated)) {}

  /// What operations make again is elsewhere. `memory` may be null where they make nothing.
  void take(const RecomputedOperations& again, const BlockOffsets& o, std::byte* memory) {
    if (again.attention_norm) {
      attention_statistics = floats(memory + o.attention_statistics);
      normed = elements(memory + o.normed);
    }
    if (again.attention) {
      log_sums = floats(memory + o.log_sums);
      attended = elements(memory + o.attended);
    }
    if (again.mlp_norm) {
      mlp_statistics = floats(memory + o.mlp_statistics);
      mlp_normed = elements(memory + o.mlp_normed);
    }
    if (again.activation) activated = elements(memory + o.activated);
  }

  float* attention_statistics;
  float* q_statistics;
  float* k_statistics;
  float* log_sums;
  float* mlp_statistics;
  E* normed;
  E* queries;
  E* keys;
  E* qkv;
  E* attended;
  E* middle;
  E* mlp_normed;
  E* up;
  E* activated;
  const std::byte* tables = nullptr;

 private:
  static float* floats(std::byte* at) { return reinterpret_cast<float*>(at); }
  static E* elements(std::byte* at) { return reinterpret_cast<E*>(at); }
};

/// Some columns of rows of tokens.
template <class E>
struct Columns {
  E* data = nullptr;
  std::int64_t stride = 0;
};

}  // namespace shardwise::exec
