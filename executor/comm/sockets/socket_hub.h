#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/comm/channel.h"
#include "executor/comm/sockets/door.h"
#include "executor/comm/sockets/hmac.h"
#include "executor/comm/sockets/member.h"
#include "executor/comm/sockets/process_peers.h"
#include "executor/comm/sockets/socket.h"

namespace shardwise::exec {

/// Connections between the processes of a job, of which every group has its own: on one machine
/// local sockets, between machines TCP. Both ends of each prove the job's key. A thread takes
/// those that come.
class SocketHub {
 public:
  /// Listens for processes of this machine. \throws IoError when it cannot
  SocketHub();
  ~SocketHub();
  SocketHub(const SocketHub&) = delete;
  SocketHub& operator=(const SocketHub&) = delete;

  /// Listens for processes of other machines too, on these of this host's addresses, the first four
  /// of more. Once; later calls do nothing. \throws IoError when it can on none of them
  void listen_on(const std::vector<std::string>& addresses);
  const Member& own() const { return own_; }
  const std::vector<Member>& members() const { return members_; }
  /// Who the others are, by rank, and what connections prove; takes those that come from now on.
  /// \pre all get the same. \throws IoError when no thread can be started
  void know(int rank, std::vector<Member> members, const Digest& key);

  /// A connection to every other rank of a group, in its order; none at this rank's place. All
  /// ranks of the group call it, once for each channel. \throws Aborted
  std::vector<FileDescriptor> join(const std::vector<std::int64_t>& ranks, Channel channel,
                                   const Patience& patience);
  /// Ends the processes of this machine and user that no longer answer, as they are stopped; those
  /// that answer end by themselves. \pre know() was called, and the job cannot go on
  void end_silent(int rank) const;

 private:
  using Key = std::tuple<std::uint64_t, std::int32_t, std::int32_t>;  // group, channel, rank

  void serve(const Door::Rules& rules);
  FileDescriptor reach(Hello hello, const Patience& patience) const;
  std::optional<FileDescriptor> try_to_reach(const Hello& hello, const Member& other) const;
  FileDescriptor await(const Key& from, const Patience& patience);

  Member own_;
  std::vector<Member> members_;
  Digest key_{};
  std::vector<FileDescriptor> listening_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, FileDescriptor> came_;  // guarded by mutex_
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace shardwise::exec
