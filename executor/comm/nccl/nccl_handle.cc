#include "executor/comm/nccl/nccl_handle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/awake_clock.h"

namespace shardwise::exec {
namespace {

// Most calls are over in less than a thread takes to sleep and wake: they are asked for without.
constexpr std::chrono::microseconds kSpin{100};
constexpr std::chrono::microseconds kCallPoll{20};

void abort_all(const NcclCalls& calls, std::span<const ncclComm_t> comms) {
  if (comms.empty()) return;
  // Nothing can be done where even this fails, and the run ends all the same.
  const bool together = calls.group_start() == ncclSuccess;
  for (const ncclComm_t comm : comms) calls.abort(comm);
  if (together) calls.group_end();
}

}  // namespace

NcclHandle::NcclHandle(const NcclContext& context, std::string name, ncclComm_t comm)
    : context_(context), name_(std::move(name)), comm_(comm), history_(CudaCalls(context.rank)) {}

NcclHandle::~NcclHandle() {
  if (const ncclComm_t comm = take()) abort_all(context_.library->calls(), {&comm, 1});
}

void abort_together(std::span<const std::shared_ptr<NcclHandle>> handles) {
  std::vector<ncclComm_t> comms;
  for (const std::shared_ptr<NcclHandle>& each : handles) {
    if (const ncclComm_t comm = each->take()) comms.push_back(comm);
  }
  if (!comms.empty()) abort_all(handles.front()->context().library->calls(), comms);
}

bool NcclHandle::is_open() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return comm_ != nullptr;
}

void NcclHandle::call(const char* what, std::size_t count, const Call& call) {
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (comm_ == nullptr) throw Aborted("a communicator was aborted");
    history_.add(what, count);
    result = call(comm_);
  }
  settle(what, result);
}

void NcclHandle::call(const char* what, std::size_t count, const CudaStream& stream,
                      const Call& call) {
  this->call(what, count, call);
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.follow(stream);
}

void NcclHandle::settle(const char* what, ncclResult_t result) {
  // Not every call says that it goes on: ncclCommSplit returns success (NCCL 2.28.9 on an H100).
  if (result == ncclSuccess) result = state();
  const AwakeClock::time_point begin = AwakeClock::now();
  while (result == ncclInProgress) {
    context_.abort->check();
    const std::chrono::duration<double> waited = AwakeClock::now() - begin;
    if (waited > context_.timeout) {
      context_.abort->raise_hung(fmt::format("rank {} waited {} s in {} of {}", context_.rank,
                                             context_.timeout.count(), what, name_));
      throw Aborted("another rank did not arrive");
    }
    if (waited > kSpin) {
      std::this_thread::sleep_for(kCallPoll);
    } else {
      std::this_thread::yield();
    }
    result = state();
  }
  if (result != ncclSuccess) fail(what, result);
}

ncclResult_t NcclHandle::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) throw Aborted("a communicator was aborted");
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = context_.library->calls().get_async_error(comm_, &state);
  if (asked == ncclSuccess) return state;
  throw NcclError(fmt::format("ncclCommGetAsyncError of {}: {}", name_, reason(asked)));
}

/// \pre the mutex is locked
std::string NcclHandle::reason(ncclResult_t result) const {
  const NcclCalls& calls = context_.library->calls();
  const char* const more = comm_ != nullptr ? calls.get_last_error(comm_) : nullptr;
  std::string text = calls.get_error_string(result);
  if (more != nullptr && *more != '\0') text += fmt::format(" ({})", more);
  // One line, whatever the library says.
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void NcclHandle::fail(const char* what, ncclResult_t result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  throw NcclError(fmt::format("{} of {}: {}", what, name_, reason(result)));
}

std::string NcclHandle::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return {};
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = context_.library->calls().get_async_error(comm_, &state);
  if (asked != ncclSuccess) return fmt::format("ncclCommGetAsyncError: {}", reason(asked));
  if (state != ncclSuccess && state != ncclInProgress) return reason(state);
  try {
    const std::optional<NcclHistory::Oldest> oldest = history_.oldest();
    if (!oldest || oldest->seconds < context_.timeout.count()) return {};
    return fmt::format("{} has not ended for {:.1f} s", oldest->what, oldest->seconds);
  } catch (const CudaError& broken) {
    return broken.what();
  }
}

std::string NcclHandle::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return name_ + ": " + history_.describe();
}

ncclComm_t NcclHandle::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(comm_, nullptr);
}

void NcclHandle::finalize() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return;
  const ncclResult_t result = context_.library->calls().finalize(comm_);
  if (result != ncclSuccess && result != ncclInProgress) {
    throw NcclError(fmt::format("ncclCommFinalize of {}: {}", name_, reason(result)));
  }
}

void NcclHandle::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (comm_ == nullptr) return;
  }
  settle("ncclCommFinalize", ncclInProgress);
  const ncclResult_t result = context_.library->calls().destroy(take());
  if (result != ncclSuccess) fail("ncclCommDestroy", result);
}

}  // namespace shardwise::exec
