#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "executor/comm/socket.h"

namespace shardwise::exec {

/// Connections whose other end is to say who it is, in a message of one length. All are heard at
/// once, so who is silent, slow or gone keeps nobody waiting: ports are open to anybody.
class Arrivals {
 public:
  struct Arrival {
    FileDescriptor line;
    std::vector<std::byte> said;
    int key = 0;  // as add() was told
  };

  /// \param bytes  of the message. \param seconds  that a connection has to say it
  Arrivals(std::size_t bytes, double seconds) : bytes_(bytes), seconds_(seconds) {}

  void add(FileDescriptor line, int key);
  /// Whether a connection with this key is still to say who it is.
  bool has(int key) const;
  /// Waits for at most 100 ms, or until then. \param listening  also takes who connects to these
  /// \returns those that have said all
  std::vector<Arrival> hear(std::span<const FileDescriptor> listening, Deadline until);

 private:
  struct Pending {
    Arrival arrival;
    std::size_t heard = 0;  // bytes
    Deadline until;
    bool gone = false;

    void hear();
  };

  std::size_t bytes_;
  double seconds_;
  std::vector<Pending> pending_;
};

}  // namespace shardwise::exec
