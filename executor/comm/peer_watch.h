#pragma once

#include <sys/types.h>

#include <thread>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/communicator.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// Ends the run when the process of another rank on this host ends before it, for as long as it
/// lives: whoever started the processes may be slow to notice, or may not mind. It is
/// given a second.
class PeerWatch {
 public:
  /// All ranks make one, each in a process of its own.
  PeerWatch(World& world, AbortSignal& abort);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  struct Peer {
    int rank = 0;
    pid_t process = 0;
    FileDescriptor ends;  // can be read once the process has ended. Source: pidfd_open(2)
  };

  void watch();

  int rank_;
  AbortSignal& abort_;
  std::vector<Peer> peers_;
  FileDescriptor closing_;  // the writing end of a pipe
  FileDescriptor closed_;   // its reading end
  std::thread thread_;
};

}  // namespace shardwise::exec
