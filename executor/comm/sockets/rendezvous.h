#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/comm/sockets/hmac.h"
#include "executor/comm/sockets/socket_hub.h"

namespace shardwise::exec {

/// Where the processes of a job find one another: rank 0 listens there.
struct Rendezvous {
  std::string host;  // of rank 0
  /// Rank 0 takes the first of these that is free; the others ask each of them whether it is rank
  /// 0. It listens on the addresses of `host` alone.
  int first_port = 0;
  int ports = 16;
  std::string job;     // what tells its processes from those of other jobs
  std::string secret;  // what its processes alone know; empty: nothing
  /// All ranks are on this host: they meet at a local socket and no network is listened to. Without
  /// a secret, processes of this user alone are believed, as the kernel names them.
  bool this_host_only = false;
  /// Is told once when a rank has only met processes with another secret for 5 s, or half of its
  /// timeout: it may wait in vain.
  // NOLINTNEXTLINE(readability-redundant-member-init): may be left out of a list of values
  std::function<void(const std::string&)> note = {};

  /// Key that both ends of a connection prove to know: of one secret, job and number of ranks.
  Digest key(int size) const;
};

/// The name of the local socket at which rank 0 of one host listens, if the names of all places
/// before it are taken. Only those foresee it that know the secret, or that there is none.
/// \param key  Rendezvous::key()
std::string local_place(const Rendezvous& at, const Digest& key, int place);

/// Whether a host can only be this one: localhost or a loopback address.
bool names_this_host(const std::string& host);

/// Result of a rendezvous for a process.
struct Met {
  std::vector<Member> members;  // by rank
  Digest key{};  // of the job's other connections: of the secret and a number that rank 0 drew
};

/// Shows this process to the others. Has the hub listen where they can reach it.
/// \throws IoError when some have not come within the timeout; Aborted where rank 0 says so
Met meet(const Rendezvous& rendezvous, int rank, int size, SocketHub& hub, double patience_s);

}  // namespace shardwise::exec
