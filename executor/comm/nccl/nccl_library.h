#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "executor/comm/failure_line.h"

namespace shardwise::exec {

/// A call of NCCL failed; says which, on which communicator and rank, and why.
class NcclError : public BetweenRanks {
 public:
  using BetweenRanks::BetweenRanks;
};

/// The functions of NCCL that are called, each under its own prototype.
struct NcclCalls {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommSplit) split = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  // Null before NCCL 2.19.
  decltype(&ncclCommRegister) register_buffer = nullptr;
  decltype(&ncclCommDeregister) deregister_buffer = nullptr;
  decltype(&ncclMemAlloc) allocate_memory = nullptr;
  decltype(&ncclMemFree) free_memory = nullptr;
  // Null before NCCL 2.27.
  decltype(&ncclCommWindowRegister) register_window = nullptr;
  decltype(&ncclCommWindowDeregister) deregister_window = nullptr;
};

/// NCCL as it is on this machine: not linked, so that programs start without it.
class NcclLibrary {
 public:
  /// Opens the first libnccl.so.2 of the folders; an empty one is the loader's own search. It stays
  /// open until the process ends, as its threads may.
  /// \throws IoError that names the folders; NcclError, the version and what it lacks
  static NcclLibrary open(const std::vector<std::string>& folders = default_folders());
  /// Folders that NvidiaLibrary has for "nccl".
  static std::vector<std::string> default_folders();

  /// \throws NcclError when the version is too old
  NcclLibrary(const NcclCalls& calls, std::string where);

  const NcclCalls& calls() const { return calls_; }
  /// 10000 * major + 100 * minor + patch.
  int version() const { return version_; }
  /// "NCCL 2.28.9 (/usr/local/cuda/lib64/libnccl.so.2)".
  std::string describe() const;

 private:
  NcclCalls calls_;
  std::string where_;
  int version_ = 0;
};

}  // namespace shardwise::exec
