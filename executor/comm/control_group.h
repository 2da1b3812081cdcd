#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace shardwise::exec {

/// One rank's end of a group that exchanges bytes of host memory: what ranks agree on, results,
/// files, identifiers. Every rank of the group makes the same calls in the same order; a call
/// blocks until this rank's bytes have been sent and received. Tensors go through a Communicator.
class ControlGroup {
 public:
  virtual ~ControlGroup() = default;
  ControlGroup() = default;
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// `mine` of every rank, in order, in `all`. \pre equal sizes, all.size() == size() * mine.size()
  virtual void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// The root's `bytes` in those of every rank.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// A message to another rank of the group, which receives as many bytes.
  virtual void send(std::span<const std::byte> message, int to) = 0;
  virtual void receive(std::span<std::byte> message, int from) = 0;
};

/// The texts of every rank of a group, in rank order. \throws IoError when a text is longer than
/// 64 MiB
std::vector<std::string> all_gather_texts(ControlGroup& group, const std::string& own);

}  // namespace shardwise::exec
