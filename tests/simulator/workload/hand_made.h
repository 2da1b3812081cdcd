#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "planner/spec/program/step_program.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// A step program written by hand: operations with their times.
class HandMade {
 public:
  explicit HandMade(std::size_t stages = 1);

  /// Adds an operation. \returns its index
  std::uint32_t add(std::size_t stage, Stream stream, double seconds,
                    std::initializer_list<std::uint32_t> waits = {});
  std::uint32_t add(std::size_t stage, Stream stream, double seconds,
                    const std::vector<std::uint32_t>& waits);
  /// Adds a collective as above.
  std::uint32_t collective(std::size_t stage, Stream stream, double seconds, GroupKind group,
                           const std::vector<std::uint32_t>& waits = {});
  /// A buffer of `bytes`. \returns its index
  std::uint32_t buffer(std::size_t stage, std::int64_t bytes,
                       MemoryCategory category = MemoryCategory::activations,
                       bool resident = false);
  void allocates(std::size_t stage, std::uint32_t op, const std::vector<std::uint32_t>& buffers);
  void frees(std::size_t stage, std::uint32_t op, const std::vector<std::uint32_t>& buffers);

  ProgramOp& op(std::size_t stage, std::uint32_t index) {
    return program.stages[stage].operations[index];
  }
  CostPrice& price(std::size_t stage, std::uint32_t index) {
    return prices[stage][static_cast<std::size_t>(op(stage, index).cost)];
  }

  StepProgram program;
  Prices prices;

 private:
  IndexRange list(std::size_t stage, const std::vector<std::uint32_t>& indices);
};

/// Uniform pipeline stages: `forward` and `backward` seconds of a micro-batch on a stage, spread
/// over `vpp` chunks; messages take `hop`.
struct Pipeline {
  std::int32_t stages = 4;
  std::int32_t microbatches = 8;
  std::int32_t vpp = 1;
  double forward = 1;
  double backward = 2;
  double hop = 0;
};
HandMade gpipe(const Pipeline& shape);
HandMade one_f_one_b(const Pipeline& shape);  // interleaved when vpp > 1

/// An FSDP step of `layers` layers, forward and backward, gathers one layer ahead: 3 gathers and
/// reductions and 5 compute operations a layer.
HandMade fsdp(std::int32_t layers, GroupKind group = GroupKind::dp_shard);

}  // namespace shardwise::sim
