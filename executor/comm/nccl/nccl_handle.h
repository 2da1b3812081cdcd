#pragma once

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "executor/comm/abort.h"
#include "executor/comm/nccl/nccl_history.h"
#include "executor/comm/nccl/nccl_library.h"

namespace shardwise::exec {

/// Context that the communicators of a rank share.
struct NcclContext {
  const NcclLibrary* library = nullptr;
  AbortSignal* abort = nullptr;
  // Patience with a call that is in progress on the host, and for an operation on the device.
  std::chrono::duration<double> timeout{0};
  int rank = 0;  // of the job, for messages
  int gpu = 0;   // of the rank, as CUDA counts
};

/// A non-blocking communicator of NCCL with its last operations, for messages. Calls come from one
/// thread; check(), describe() and abort_together() from any.
class NcclHandle {
 public:
  using Call = std::function<ncclResult_t(ncclComm_t)>;
  /// \param comm  owned from now on; may still be in progress
  NcclHandle(const NcclContext& context, std::string name, ncclComm_t comm);
  /// Aborts what close() has not ended.
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const std::string& name() const { return name_; }
  const NcclContext& context() const { return context_; }
  /// Whether there is a communicator that was not aborted.
  bool is_open() const;
  /// Makes one call of NCCL, and waits on the host while it is in progress. \throws NcclError,
  /// Aborted \param count  elements, for messages
  void call(const char* what, std::size_t count, const Call& call);
  /// Calls as above for work that is issued to a stream: in progress on the host only while
  /// connections are made. \throws CudaError too
  void call(const char* what, std::size_t count, const CudaStream& stream, const Call& call);
  /// Waits until a call that returned `result` is over. \throws NcclError, Aborted
  void settle(const char* what, ncclResult_t result);
  /// Failure since then on the device or another rank, in words; empty for none. An operation that
  /// has not ended for longer than the context's timeout is a failure too.
  std::string check();
  /// The last operations, the latest first, in one line.
  std::string describe() const;
  /// Announces the end to the other ranks and returns …
  void finalize();
  /// … and waits for theirs.
  void close();

 private:
  friend void abort_together(std::span<const std::shared_ptr<NcclHandle>> handles);

  /// NCCL's communicator, which is none of this any more; null where it has ended.
  ncclComm_t take();
  ncclResult_t state();
  [[noreturn]] void fail(const char* what, ncclResult_t result);
  std::string reason(ncclResult_t result) const;

  NcclContext context_;
  std::string name_;
  mutable std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // null once it has ended; guarded by mutex_
  NcclHistory history_;        // guarded by mutex_
};

/// Ends the communicators with all their operations in progress, those that other ranks have left
/// too. All are told before one is waited for: NCCL waits for the graphs that hold a communicator,
/// and a graph may wait for an operation of another one.
void abort_together(std::span<const std::shared_ptr<NcclHandle>> handles);

}  // namespace shardwise::exec
