#pragma once

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "executor/comm/abort.h"
#include "executor/comm/nccl/nccl_history.h"
#include "executor/comm/nccl/nccl_library.h"

namespace shardwise::exec {

/// What the communicators of a rank have in common.
struct NcclContext {
  const NcclLibrary* library = nullptr;
  AbortSignal* abort = nullptr;
  // For a call that is in progress on the host, and for an operation on the device.
  std::chrono::duration<double> timeout{0};
  int rank = 0;  // of the job, for messages
};

/// A non-blocking communicator of NCCL with its last operations, for messages. Calls come from one
/// thread; check(), abort() and describe() from any.
class NcclHandle {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t)>;
  /// Makes the communicator. \param make  \returns what NCCL's call returns
  /// \throws NcclError, Aborted
  NcclHandle(const NcclContext& context, std::string name, const char* call,
             const std::function<ncclResult_t(ncclComm_t*)>& make);
  /// Aborts what close() has not ended.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const std::string& name() const { return name_; }
  const NcclContext& context() const { return context_; }
  /// Makes one call of NCCL, and waits on the host while it is in progress. \throws NcclError,
  /// Aborted \param count  elements, for messages
  void call(const char* what, std::size_t count, const Call& call);
  /// The same for what is issued to a stream: in progress on the host only while connections are
  /// made. \throws CudaError too
  void call(const char* what, std::size_t count, const CudaStream& stream, const Call& call);
  /// What has gone wrong since on the device or another rank, in words; empty for nothing. An
  /// operation that has not ended for longer than the context's timeout is wrong too.
  std::string check();
  /// The last operations, the latest first, in one line.
  std::string describe() const;
  /// Ends operations in progress, those that other ranks have left too.
  void abort();
  /// Announces the end to the other ranks and returns …
  void finalize();
  /// … and waits for theirs.
  void close();

 private:
  /// Waits until a call is over. \throws NcclError, Aborted
  void settle(const char* what, ncclResult_t result);
  ncclResult_t state();
  [[noreturn]] void fail(const char* what, ncclResult_t result);
  std::string reason(ncclResult_t result) const;

  NcclContext context_;
  std::string name_;
  mutable std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null once it has ended; guarded by mutex_
  NcclHistory history_;        // guarded by mutex_
};

}  // namespace shardwise::exec
