#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "executor/comm/sockets/socket.h"

namespace shardwise::exec {

/// Connections whose other end is to send a message of a known length. All are heard at once, so
/// one that is silent, slow or gone keeps none waiting: ports are open to anybody.
class Arrivals {
 public:
  struct Arrival {
    FileDescriptor line;
    std::vector<std::byte> said;
    int key = 0;                    // as add() was told
    std::vector<std::byte> before;  // the same
  };

  /// \param key     what has() knows it by. \param bytes  of the message
  /// \param before  kept with the connection. \param seconds  that it has to send the message
  void add(FileDescriptor line, int key, std::size_t bytes, double seconds,
           std::vector<std::byte> before = {});
  /// Whether connections were not taken, or closed again, as the process had no file descriptor
  /// left for them.
  bool ran_out() const { return ran_out_; }
  /// Whether a connection with this key has still to send its message.
  bool has(int key) const;
  /// Waits for at most 100 ms, or until then. \param listening  takes one connection of each, with
  /// key 0 and as add() is told. \returns those that have sent all
  std::vector<Arrival> hear(std::span<const FileDescriptor> listening, std::size_t bytes,
                            double seconds, Deadline until);

 private:
  struct Pending {
    Arrival arrival;
    std::size_t heard = 0;  // bytes
    Deadline until;
    bool gone = false;

    void hear();
  };

  bool drop_one();
  std::optional<FileDescriptor> accept_from(const FileDescriptor& listening);

  std::vector<Pending> pending_;
  bool ran_out_ = false;
};

}  // namespace shardwise::exec
