#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "executor/comm/arrivals.h"
#include "executor/comm/process_group.h"
#include "executor/comm/socket.h"

namespace shardwise::exec {

/// A process of a job as the others know it. Sent as it lies in memory.
struct Member {
  std::array<char, 192> machine{};  // the same where kernel, network and numbers of processes are
  std::array<char, 64> host{};      // its name, for people
  std::array<std::array<char, 64>, 4> addresses{};  // of its host, best first
  std::array<std::uint64_t, 2> token{};  // drawn: that of rank 0 is what the job's connections show
  std::int32_t port = 0;
  std::int32_t process = 0;  // its number, for people: nothing is done to a process for it

  bool same_machine(const Member& other) const { return machine == other.machine; }
};

/// Connections between the processes of a job, of which every group has its own: on one machine
/// local sockets, between machines TCP.
class SocketHub {
 public:
  /// Listens for the others. \param this_host_only  none of them is elsewhere
  /// \throws IoError when it cannot
  explicit SocketHub(bool this_host_only);
  const Member& own() const { return own_; }
  const std::vector<Member>& members() const { return members_; }
  /// Who the others are, by rank. \pre all get the same
  void know(std::vector<Member> members) { members_ = std::move(members); }

  /// A connection to every other rank of a group, in its order; none at this rank's place. All
  /// ranks of the group call it, once for each number. \throws Aborted
  std::vector<FileDescriptor> join(const std::vector<std::int64_t>& ranks, int number,
                                   const Patience& patience);

 private:
  /// What a connection begins with.
  struct Hello {
    std::array<std::uint64_t, 2> token{};
    std::uint64_t group = 0;
    std::int32_t number = 0;
    std::int32_t rank = 0;
    auto key() const { return std::tuple(group, number, rank); }
  };

  FileDescriptor reach(const Hello& hello, int rank, const Patience& patience) const;
  std::optional<FileDescriptor> try_to_reach(const Hello& hello, const Member& other) const;
  FileDescriptor await(const Hello& from, const Patience& patience);

  Member own_;
  std::vector<Member> members_;
  std::vector<FileDescriptor> listening_;
  std::mutex mutex_;
  Arrivals arrivals_{sizeof(Hello), 60};  // guarded by mutex_
  std::map<std::tuple<std::uint64_t, std::int32_t, std::int32_t>, FileDescriptor>
      came_;  // by group, number, rank; guarded by mutex_
};

}  // namespace shardwise::exec
