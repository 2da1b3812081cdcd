#pragma once

// Streams of the fake, and who runs next.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fibers.h"

namespace fake_cuda {

struct Capture;

/// One recording of an event.
struct Mark {
  void* edge = host_cuda::new_edge();
  bool done = false;
  std::int64_t at_us = 0;
  bool captured = false;
  std::weak_ptr<Capture> capture;  // that it was recorded in
  std::vector<bool> follows;       // of the capture's steps: those before it
};

struct Item {
  Work work;
  std::shared_ptr<Mark> records;
  std::shared_ptr<Mark> waits;
  void* issued = nullptr;  // edge
};

}  // namespace fake_cuda

struct CUstream_st {
  int id = 0;
  bool of_graph = false;  // not a program's
  int priority = 0;
  std::deque<fake_cuda::Item> queue;
  host_cuda::Context fiber;
  void* over = nullptr;  // edge of all that it has run
  std::shared_ptr<fake_cuda::Capture> capture;
  std::vector<bool> follows;  // of the capture's steps: those before what comes next
};

struct CUevent_st {
  bool timed = false;
  std::shared_ptr<fake_cuda::Mark> mark;
};

namespace fake_cuda {

/// Nothing within is watched by the thread sanitizer: neither accesses nor what locks order.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

/// All streams of the process. Every call of the fake holds the mutex from its begin to its end, so
/// one thread of the host at a time runs work.
class Streams {
 public:
  static Streams& all();

  cudaStream_t open();
  /// Runs what it has left first.
  void close(cudaStream_t stream);
  /// Closes streams of a graph, and lets go of `keep`, once they have nothing left.
  void close_later(std::vector<cudaStream_t> streams, std::shared_ptr<void> keep);
  void put(cudaStream_t stream, Item item);
  /// Runs heads until `over`. \returns cudaErrorLaunchTimeout when nothing can run any more
  cudaError_t wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& over);
  /// Runs one head, unless the calling thread never issues work and only looks. \returns
  /// cudaErrorNotReady unless `over`, or as wait()
  cudaError_t ask(const std::function<bool()>& over);
  /// Runs what can run.
  void run_all();
  void reset(std::uint64_t seed);

  std::mutex mutex;
  std::vector<cudaStream_t> open_streams;
  std::vector<std::string> complaints;
  std::int64_t worked = 0;
  std::int64_t now_us = 0;
  int hosts = 1;
  bool beside_others = false;  // processes that may let work of this one go on

 private:
  struct Closing {
    std::vector<cudaStream_t> streams;
    std::shared_ptr<void> keep;
  };

  void close_what_is_over();
  bool run_one();
  bool stuck();
  void run_head(cudaStream_t stream);

  std::vector<host_cuda::Context> stacks_;  // of streams that are closed
  std::vector<Closing> closing_;
  std::mt19937_64 random_;
  std::condition_variable changed_;
  std::set<std::thread::id> waiting_;  // threads that found nothing to run since something changed
  std::set<std::thread::id> issuers_;
  bool told_ = false;
  int next_id_ = 0;
};

}  // namespace fake_cuda
