#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "executor/device/device.h"
#include "executor/engine/arena.h"
#include "executor/kernels/compute/compute.h"
#include "executor/kernels/tensor_view.h"
#include "executor/kernels/workers.h"
#include "executor/optimizer/adamw.h"
#include "planner/lowering/operands/state_types.h"
#include "planner/lowering/operands/unit_pieces.h"
#include "planner/spec/program/operand.h"

namespace shardwise::exec {

/// Where weights come from: the elements of a whole tensor from number `first` on. Called by all
/// ranks of a process at once, and by several threads of each.
using WeightSource =
    std::function<void(const UnitTensor& tensor, std::int64_t first, std::span<float> values)>;

/// Each element drawn from its tensor's name and its number.
WeightSource drawn_weights(std::uint64_t seed, double output_deviation_scale);

/// Elements of a rank's part of a tensor from number `first` on, by their numbers in the whole one;
/// zeros where the part is padded.
void read_part(const WeightSource& source, const UnitTensor& tensor, int tp_rank,
               std::int64_t first, std::span<float> values);

/// Numbers of the host into a tensor of the device, rounded where it is bf16.
void upload_numbers(const TensorView& to, std::span<const float> values, Device& device,
                    DeviceStream& stream);

/// Elements the optimizer reads and writes of a unit on this rank: as many elements of each.
struct UnitUpdate {
  std::size_t unit = 0;
  ConstTensorView gradients;
  TensorView wide_gradients;  // place of an fp32 copy of them; empty when read as they are
  TensorView weights;
  TensorView main;  // fp32 copy of them that is updated; empty where they are themselves
  std::span<std::uint16_t> remainders;  // or, beside bf16 weights, what they lack of it
  TensorView exp_avg;
  TensorView exp_avg_sq;
};

/// Parameters, gradients and optimizer state of a rank, as the plan's placements spread them.
class RankState {
 public:
  /// \param buffers  where the state of each unit lies, in every program of the run
  RankState(const StateUnits& units, const StatePlacement& placement, const StateTypes& types,
            const DataParallelPlace& place, const std::vector<UnitBuffers>& buffers);

  /// The parts of a unit's state that this rank keeps. The memory is that of `arena`'s program.
  struct View {
    TensorView weights;    // whole, or this rank's shard
    TensorView gradients;  // whole, or this rank's shard
    TensorView exp_avg;    // moments in fp32, of what the optimizer updates here
    TensorView exp_avg_sq;
    // The weights that it updates: fp32, or bf16 where they are `updated`. Empty for remainders.
    TensorView main;
    TensorView updated;                   // the same elements of `weights`
    std::span<std::uint16_t> remainders;  // of main weights in halves; exp_avg_sq has their signs
    TensorView updated_gradient;          // and of `gradients`
    TensorView reduced;                   // what the reduction over the inner axis leaves here
    ShardRange held;                      // which elements those are
  };
  View view(const Arena& arena, std::size_t program, std::size_t unit) const;

  // Main weights and second moments as fp32 numbers of the host, whichever way a rank keeps them:
  // elements from `first` on of those that it updates of a unit.

  static void download_main(const View& view, std::size_t first, std::span<float> main,
                            Device& device, DeviceStream& stream);
  static void download_exp_avg_sq(const View& view, std::size_t first, std::span<float> exp_avg_sq,
                                  Device& device, DeviceStream& stream);
  /// Both: weights in halves are kept together. Leaves `updated` as it is.
  static void upload(const View& view, std::size_t first, std::span<const float> main,
                     std::span<const float> exp_avg_sq, Device& device, DeviceStream& stream);

  /// Fills this rank's weights, and no others, rows that an engine adds with zeros: all ways of
  /// sharding give the same model. Waits until they are there.
  void fill(const Arena& arena, std::size_t program, const WeightSource& source,
            Device& device) const;
  /// \param updates  of units; of every one what this rank updates
  /// \param step  in the device's memory
  void update(std::span<const UnitUpdate> updates, const AdamStep* step, const Issue& to) const;
  /// The elements of a unit whose weights this rank keeps.
  ShardRange keeps(std::size_t unit) const { return held(unit, placement_.parameters); }
  /// Those that this rank stands for: of those that it updates, over all ranks each once.
  ShardRange stands_for(std::size_t unit) const {
    return shardwise::stands_for(units_.units[unit], placement_.optimizer, place_);
  }

  const StateUnits& units() const { return units_; }
  const StatePlacement& placement() const { return placement_; }
  const StateTypes& types() const { return types_; }
  const DataParallelPlace& place() const { return place_; }

 private:
  ShardRange held(std::size_t unit, Placement placement) const {
    return held_of(units_.units[unit], placement, place_);
  }
  /// put(first, values) for runs of a range's elements; first: in the unit.
  template <class Put>
  void for_runs(std::size_t unit, const ShardRange& range, const WeightSource& source,
                Workers& workers, Put put) const;

  const StateUnits& units_;
  StatePlacement placement_;
  StateTypes types_;
  DataParallelPlace place_;
  std::vector<UnitBuffers> buffers_;  // by unit
};

}  // namespace shardwise::exec
