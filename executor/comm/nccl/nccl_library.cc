#include "executor/comm/nccl/nccl_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "executor/device/nvidia_library.h"

namespace shardwise::exec {
namespace {

// The first with ncclCommSplit and ncclConfig_t::splitShare. Source: NCCL's release notes, 2.18.1.
constexpr int kOldest = NCCL_VERSION(2, 18, 1);

const NvidiaLibrary::Name kName = {
    {"libnccl.so.2"}, "nccl", fmt::format("nvidia-nccl-cu{}", CUDART_VERSION / 1000)};

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::vector<std::string> NcclLibrary::default_folders() {
  return NvidiaLibrary::default_folders(kName.package);
}

NcclLibrary NcclLibrary::open(const std::vector<std::string>& folders) {
  NvidiaLibrary library(kName, folders);
  NcclCalls calls;
  library.find(calls.get_version, "ncclGetVersion");
  library.find(calls.get_unique_id, "ncclGetUniqueId");
  library.find(calls.get_error_string, "ncclGetErrorString");
  library.find(calls.get_last_error, "ncclGetLastError");
  library.find(calls.init_rank, "ncclCommInitRankConfig");
  library.find(calls.split, "ncclCommSplit");
  library.find(calls.finalize, "ncclCommFinalize");
  library.find(calls.destroy, "ncclCommDestroy");
  library.find(calls.abort, "ncclCommAbort");
  library.find(calls.get_async_error, "ncclCommGetAsyncError");
  library.find(calls.all_gather, "ncclAllGather");
  library.find(calls.reduce_scatter, "ncclReduceScatter");
  library.find(calls.all_reduce, "ncclAllReduce");
  library.find(calls.send, "ncclSend");
  library.find(calls.receive, "ncclRecv");
  library.find(calls.group_start, "ncclGroupStart");
  library.find(calls.group_end, "ncclGroupEnd");
  const std::vector<std::string> missing = library.missing();
  library.find(calls.register_buffer, "ncclCommRegister");
  library.find(calls.deregister_buffer, "ncclCommDeregister");
  library.find(calls.allocate_memory, "ncclMemAlloc");
  library.find(calls.free_memory, "ncclMemFree");
  library.find(calls.register_window, "ncclCommWindowRegister");
  library.find(calls.deregister_window, "ncclCommWindowDeregister");
  const std::string where = library.file();
  if (!missing.empty()) {
    int version = 0;
    if (calls.get_version != nullptr) calls.get_version(&version);
    throw NcclError(fmt::format("NCCL {} ({}) lacks {}; {} or later is needed",
                                version_text(version), where, fmt::join(missing, ", "),
                                version_text(kOldest)));
  }
  return {calls, where};
}

NcclLibrary::NcclLibrary(const NcclCalls& calls, std::string where)
    : calls_(calls), where_(std::move(where)) {
  const ncclResult_t result = calls_.get_version(&version_);
  if (result != ncclSuccess) {
    throw NcclError(
        fmt::format("ncclGetVersion of {}: {}", where_, calls_.get_error_string(result)));
  }
  if (version_ < kOldest) {
    throw NcclError(fmt::format("NCCL {} ({}) is too old; {} or later is needed",
                                version_text(version_), where_, version_text(kOldest)));
  }
}

std::string NcclLibrary::describe() const {
  return fmt::format("NCCL {} ({})", version_text(version_), where_);
}

}  // namespace shardwise::exec
