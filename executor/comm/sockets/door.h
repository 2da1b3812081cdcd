#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "executor/comm/sockets/arrivals.h"
#include "executor/comm/sockets/handshake.h"
#include "executor/comm/sockets/socket.h"

namespace shardwise::exec {

/// The accepting end of a process: admits connections whose other end proves the job's key.
/// Strangers keep nobody waiting. At most 256 of them are listened to, and no more than a quarter
/// of the files that the process may have open.
class Door {
 public:
  struct Rules {
    Purpose purpose = Purpose::rendezvous;
    int rank = 0;  // this process
    int size = 0;
    Digest key{};
    std::size_t said_bytes = 0;  // of what is said with the proof
    bool same_user = false;      // admits this user alone, as the kernel names it
  };
  struct Guest {
    FileDescriptor line;
    Hello hello;
    std::vector<std::byte> said;
  };

  explicit Door(const Rules& rules) : rules_(rules) {}
  /// Accepts connections for 100 ms at most, or until the deadline. \returns the authenticated ones
  std::vector<Guest> admit(std::span<const FileDescriptor> listening, Deadline until);
  /// Connections that began as a process of a job does and did not prove the key.
  int turned_away() const { return turned_away_; }
  /// Whether the process had no file descriptor left for some.
  bool ran_out() const { return arrivals_.ran_out(); }

 private:
  void challenge(Arrivals::Arrival arrival);

  Rules rules_;
  Arrivals arrivals_;
  int turned_away_ = 0;
};

/// The connecting end: proves the key and has the other end prove it. \returns whether both did
bool greet(const FileDescriptor& line, const Hello& hello, const Digest& key, Deadline until);
/// Whether the other end proves the key; this end does not prove one.
bool answers(const FileDescriptor& line, const Hello& hello, const Digest& key, Deadline until);

}  // namespace shardwise::exec
