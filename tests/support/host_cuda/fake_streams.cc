#include "tests/support/host_cuda/fake_streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncEnd(const char* file, int line);
}
// NOLINTEND(readability-identifier-naming)

namespace fake_cuda {
namespace {

// Whole programs run CPU kernels, of which a product of bf16 has 540 KiB in one function.
constexpr std::size_t kStackBytes = std::size_t{2} << 20U;

constexpr std::chrono::milliseconds kOthersWork{1};

/// Between the host's thread that runs a head and the stream's fiber; behind the mutex.
struct Handover {
  host_cuda::Context host;
  cudaStream_t stream = nullptr;
  Item* item = nullptr;
} handover;

/// What a stream's fiber does for ever: its head, and back.
void serve() {
  host_cuda::entered();
  for (;;) {
    CUstream_st& stream = *handover.stream;
    Item& item = *handover.item;
    host_cuda::acquire(item.issued);
    if (item.waits) host_cuda::acquire(item.waits->edge);
    if (item.work.run) item.work.run();
    item.work = {};  // what it captured ends in the stream, which read it
    if (item.records) host_cuda::release(item.records->edge);
    host_cuda::release(stream.over);
    host_cuda::switch_fiber(stream.fiber, handover.host, false);
  }
}

std::string queue_state(const CUstream_st& stream) {
  const Item& head = stream.queue.front();
  const std::string why = head.waits                    ? "an event"
                          : head.work.waits_for.empty() ? "something"
                                                        : head.work.waits_for;
  return "stream " + std::to_string(stream.id) + ": " + head.work.name + " waits for " + why;
}

}  // namespace

Unwatched::Unwatched() {
  if (AnnotateIgnoreSyncBegin == nullptr) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

Unwatched::~Unwatched() {
  if (AnnotateIgnoreSyncBegin == nullptr) return;
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

Streams& Streams::all() {
  static Streams streams;
  return streams;
}

cudaStream_t Streams::open() {
  auto* const stream = new CUstream_st;
  stream->id = next_id_++;
  if (stacks_.empty()) stacks_.push_back(host_cuda::new_stack(kStackBytes));
  stream->fiber = stacks_.back();
  stacks_.pop_back();
  stream->over = host_cuda::new_edge();
  host_cuda::start(stream->fiber, serve);
  open_streams.push_back(stream);
  return stream;
}

void Streams::close(cudaStream_t stream) {
  while (!stream->queue.empty() && run_one()) {
  }
  if (!stream->queue.empty()) complaints.push_back("destroyed, " + queue_state(*stream));
  std::erase(open_streams, stream);
  host_cuda::end(stream->fiber);
  stream->fiber.address_sanitizer = nullptr;
  stacks_.push_back(stream->fiber);
  delete stream;
}

void Streams::close_later(std::vector<cudaStream_t> streams, std::shared_ptr<void> keep) {
  closing_.push_back({std::move(streams), std::move(keep)});
  close_what_is_over();
}

void Streams::close_what_is_over() {
  const auto is_over = [](const Closing& each) {
    return std::ranges::all_of(each.streams,
                               [](const CUstream_st* stream) { return stream->queue.empty(); });
  };
  for (Closing& each : closing_) {
    if (!is_over(each)) continue;
    for (const cudaStream_t stream : each.streams) close(stream);
    each = {};
  }
  std::erase_if(closing_, [](const Closing& each) { return each.streams.empty(); });
}

void Streams::run_all() {
  while (run_one()) {
  }
}

void Streams::put(cudaStream_t stream, Item item) {
  stream->queue.push_back(std::move(item));
  issuers_.insert(std::this_thread::get_id());
  waiting_.clear();
  changed_.notify_all();
}

void Streams::run_head(cudaStream_t stream) {
  // Not on this stack: the stream reads it, and the host writes there later.
  const auto item = std::make_unique<Item>(std::move(stream->queue.front()));
  stream->queue.pop_front();
  handover.stream = stream;
  handover.item = item.get();
  host_cuda::become(handover.host);
  host_cuda::switch_fiber(handover.host, stream->fiber, false);
  now_us += 1 + static_cast<std::int64_t>(random_() % 4);
  if (item->records) {
    item->records->done = true;
    item->records->at_us = now_us;
  }
  ++worked;
  waiting_.clear();
  changed_.notify_all();
}

bool Streams::run_one() {
  std::vector<cudaStream_t> can;
  for (const cudaStream_t stream : open_streams) {
    if (stream->queue.empty()) continue;
    const Item& head = stream->queue.front();
    if (head.waits && !head.waits->done) continue;
    if (head.work.ready && !head.work.ready()) continue;
    can.push_back(stream);
  }
  if (can.empty()) return false;
  run_head(can[random_() % can.size()]);
  if (!closing_.empty()) close_what_is_over();
  return true;
}

/// Whether no thread of the host will ever issue what streams wait for.
bool Streams::stuck() {
  if (beside_others) return false;
  waiting_.insert(std::this_thread::get_id());
  if (std::ssize(waiting_) < hosts) return false;
  if (!std::exchange(told_, true)) {
    for (const cudaStream_t stream : open_streams) {
      if (!stream->queue.empty()) complaints.push_back("can never go on, " + queue_state(*stream));
    }
  }
  return true;
}

cudaError_t Streams::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over) {
  while (!over()) {
    if (run_one()) continue;
    if (stuck()) {
      changed_.notify_all();
      return cudaErrorLaunchTimeout;
    }
    if (beside_others) {
      changed_.wait_for(lock, kOthersWork);
    } else {
      changed_.wait(lock);
    }
  }
  return cudaSuccess;
}

cudaError_t Streams::ask(const std::function<bool()>& over) {
  if (over()) return cudaSuccess;
  if (!issuers_.contains(std::this_thread::get_id())) return cudaErrorNotReady;
  if (!run_one() && stuck()) return cudaErrorLaunchTimeout;
  return over() ? cudaSuccess : cudaErrorNotReady;
}

void Streams::reset(std::uint64_t seed) {
  closing_.clear();
  while (!open_streams.empty()) {
    open_streams.back()->queue.clear();
    close(open_streams.back());
  }
  random_.seed(seed);
  complaints.clear();
  waiting_.clear();
  issuers_.clear();
  told_ = false;
  worked = 0;
  now_us = 0;
  hosts = 1;
  next_id_ = 0;
}

}  // namespace fake_cuda
