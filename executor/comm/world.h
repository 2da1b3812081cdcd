#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "executor/comm/channel.h"
#include "executor/comm/communicator.h"
#include "executor/comm/control_group.h"

namespace shardwise::exec {

/// A job's ranks as one of them sees them. Groups of the same ranks on different channels never
/// meet; two of the same ranks and channel share one.
class World {
 public:
  virtual ~World() = default;
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Promises of its communicators.
  virtual CommunicatorTraits traits() const = 0;
  /// A group for host bytes of `ranks`, in this order; this rank is one of them.
  virtual std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                                      Control control) = 0;
  /// A communicator of `ranks`, in this order, for the operations of one stream; this rank is one
  /// of them. All ranks of the job call together and in the same order, each with its own group of
  /// the same partition: some back ends split all groups of a partition in one collective.
  virtual std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                                     Stream stream) = 0;
  /// The memory that communicators made so far will move tensors of, for back ends that can say so
  /// to their transports. All ranks call together; the memory outlives this.
  virtual void register_memory(std::span<std::byte> /*memory*/) {}
};

/// 0, 1, … of a job.
inline std::vector<std::int64_t> all_ranks(const World& world) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
  return ranks;
}

}  // namespace shardwise::exec
