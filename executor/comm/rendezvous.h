#pragma once

#include <string>
#include <vector>

#include "executor/comm/socket_hub.h"

namespace shardwise::exec {

/// Where the processes of a job find one another: rank 0 listens there.
struct Rendezvous {
  std::string host;  // of rank 0
  /// Rank 0 takes the first of these that is free, or, where none is and all ranks are on this
  /// host, a local socket of the job's name; the others ask each of them who it is.
  int first_port = 0;
  int ports = 16;
  std::string job;  // what the processes of other jobs do not say

  /// Where to connect: the name of this host may stand for an IPv6 address first, where others are.
  std::string address() const { return this_host_only() ? "127.0.0.1" : host; }
  std::string local_name() const { return "shardwise " + job; }
  bool this_host_only() const { return host == "localhost" || host.starts_with("127."); }
};

/// Shows this process to the others. \returns all of them, by rank
/// \throws IoError when some have not come within the patience; Aborted where rank 0 says so
std::vector<Member> meet(const Rendezvous& rendezvous, int rank, int size, const Member& own,
                         double patience_s);

}  // namespace shardwise::exec
