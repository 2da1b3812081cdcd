#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/world.h"
#include "executor/device/device.h"
#include "executor/engine/arena.h"
#include "executor/engine/trainer.h"

namespace shardwise::exec {

/// A hash of bytes that come piece by piece: two texts that differ in one word of eight bytes never
/// have the same one.
class WeightHash {
 public:
  /// \pre the length of every piece but the last is a multiple of kGranule
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

  static constexpr std::size_t kGranule = 32;

 private:
  std::array<std::uint64_t, kGranule / sizeof(std::uint64_t)> lanes_{1, 2, 3, 4};
};

/// Part of a tensor a rank keeps from one step to the next.
enum class Kept : std::uint8_t {
  weights,
  used_weights,  // the same, before the optimizer wrote them
  main_weights,
  remainders,
  exp_avg,
  exp_avg_sq
};

/// Compares what several ranks keep, weights and optimizer states: what they compute from the same
/// gradients is the same to the bit, so what differs was altered by memory, a device or a link.
///
/// Each element is compared among all ranks that keep it: weights by the placement of parameters,
/// main weights and moments by that of the optimizer's state, and the table of embedding and head
/// also between the stages that both have it. Where the optimizer updates a part of the weights on
/// each rank, and the next step gathers it (overlapped gathers of ZeRO-1 and 2, HFSDP), the weights
/// that a step used are compared after it: the ranks that updated them take their hash before it.
///
/// An update or a gather writes what the next comparison would have seen. So every step also takes
/// the hash of its weights just before its update, and they are compared with the rest. A rank
/// whose part others gather takes another one just after it: what they got has to be that. Where
/// the host only issues operations, as to a GPU, a step that is compared takes it before it begins,
/// and no other does.
class ReplicaCheck {
 public:
  /// Checks a trainer that outlives this. All ranks make one, and all make the same calls.
  ReplicaCheck(Trainer& trainer, const Layout& layout, World& world, Device& device,
               const Arena& arena, AbortSignal& abort);
  ~ReplicaCheck();
  ReplicaCheck(const ReplicaCheck&) = delete;
  ReplicaCheck& operator=(const ReplicaCheck&) = delete;

  /// Before a step that after_step() follows.
  void before_step();
  /// Compares. \param done  steps that have been trained \throws Aborted after the run was ended
  /// with the ranks and the tensor that differ
  void after_step(std::int64_t done);

 private:
  /// Ranks that keep the same elements, this one among them, and what it has of them.
  struct Copies {
    std::vector<std::int64_t> ranks;
    std::vector<std::size_t> parts;
  };
  /// Neighbouring elements of a tensor.
  struct Part {
    Kept kept = Kept::weights;
    std::size_t unit = 0;
    const UnitTensor* tensor = nullptr;
    std::int64_t begin = 0;  // in the tensor
    std::int64_t count = 0;
    bool early = false;    // this rank has it a step before others
    bool spreads = false;  // others get it from this rank
    std::uint64_t hash = 0;
    std::optional<std::uint64_t> made = {};  // of what this rank's last update made
  };
  struct Place {
    std::int32_t stage = 0;
    DataParallelPlace place;
  };

  void find_parts(const Layout& layout);
  void add_parts(Kept kept, std::size_t unit, const UnitTensor& tensor, bool on_two_stages);
  std::vector<ShardRange> ranges(Placement placement, std::size_t unit, const UnitTensor& tensor,
                                 bool on_two_stages) const;
  std::pair<const std::byte*, std::size_t> bytes_of(const Part& part) const;
  std::uint64_t hash_of(const Part& part);
  void hash_used();
  void hash_made();
  void hash_parts(bool early);
  void compare(std::int64_t done, bool failed);
  void fail(std::uint64_t name, std::int64_t done, bool failed);

  Trainer& trainer_;
  Device& device_;
  const Arena& arena_;
  AbortSignal& abort_;
  std::size_t rank_;
  bool gathers_later_ = false;
  bool within_steps_ = false;  // used weights have their hash taken in every step
  std::vector<Place> places_;  // by rank
  StateUnits other_;           // of the other stage that has the table
  std::vector<Part> parts_;
  std::map<std::uint64_t, Copies> copies_;  // by the hash of their ranks
  std::unique_ptr<DeviceStream> stream_;
  std::vector<std::byte> block_;
};

}  // namespace shardwise::exec
