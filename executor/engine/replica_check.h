#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
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

/// Compares the weights that several ranks keep: what they compute from the same gradients is the
/// same to the bit, so what differs was altered by memory, a device or a link.
///
/// Ranks are replicas of one another where they keep the same elements of every unit. Where the
/// optimizer updates a part of them on each rank, and the next step gathers it (overlapped gathers
/// of ZeRO-1 and 2, HFSDP), the others have it when that step has ended: the ranks that updated it
/// take its hash one step before them.
class ReplicaCheck {
 public:
  /// Of a trainer that outlives this. All ranks make one, and all make the same calls.
  ReplicaCheck(Trainer& trainer, const Layout& layout, World& world, Device& device,
               const Arena& arena, AbortSignal& abort);
  ~ReplicaCheck();
  ReplicaCheck(const ReplicaCheck&) = delete;
  ReplicaCheck& operator=(const ReplicaCheck&) = delete;

  /// Ranks that keep the same weights as this one, itself included. 1: there is nothing to compare.
  std::int64_t replicas() const { return std::ssize(own_set_); }
  /// After each step, `done` of which have been trained; `due` begins a comparison. \throws Aborted
  /// after the run was ended with the ranks and the tensor that differ
  void after_step(std::int64_t done, bool due);

 private:
  /// Neighbouring elements of a tensor that this rank keeps, all of which the same ranks update.
  struct Part {
    std::size_t unit = 0;
    const UnitTensor* tensor = nullptr;
    std::int64_t begin = 0;  // in the unit
    std::int64_t count = 0;
    bool early = false;  // this rank has it a step before others
    std::uint64_t hash = 0;
  };

  void find_parts(const std::vector<DataParallelPlace>& places);
  void hash_parts(bool early);
  void compare();
  void fail(const std::vector<std::string>& hashes);

  Trainer& trainer_;
  Device& device_;
  const Arena& arena_;
  AbortSignal& abort_;
  int rank_;
  bool gathers_later_ = false;
  std::vector<std::vector<std::int64_t>> sets_;  // of replicas; every rank is in one
  std::vector<std::int64_t> own_set_;
  std::vector<Part> parts_;
  std::unique_ptr<DeviceStream> stream_;
  std::vector<std::byte> block_;
  std::int64_t begun_ = -1;  // steps trained when the comparison under way began
};

}  // namespace shardwise::exec
