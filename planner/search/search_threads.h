#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace shardwise {

/// Threads for a request that asks for `threads`; 0 = as many as the machine has cores.
inline int thread_count(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Runs work(0) … work(threads - 1) on `threads` threads, the calling one among them; fewer of them
/// where the system starts no more threads, so that what they share out is done all the same.
/// \throws what the first work to fail threw, once all have ended
template <class Work>
void in_parallel(int threads, Work work) {
  std::exception_ptr failed;
  std::once_flag once;
  const auto guarded = [&](int thread) {
    try {
      work(thread);
    } catch (...) {
      std::call_once(once, [&] { failed = std::current_exception(); });
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int t = 1; t < threads; ++t) others.emplace_back(guarded, t);
    } catch (
        const std::system_error&) {  // NOLINT(bugprone-empty-catch): those do it that are there
    }
    guarded(0);
  }
  if (failed) std::rethrow_exception(failed);
}

/// Indices 0 … count - 1, each given to one thread, until it is asked to stop.
class SharedIndices {
 public:
  SharedIndices(std::size_t count, std::stop_token stop) : count_(count), stop_(std::move(stop)) {}
  /// \returns false where none is left
  bool take(std::size_t& index) {
    if (stop_.stop_requested()) return false;
    index = next_++;
    return index < count_;
  }

 private:
  std::atomic<std::size_t> next_ = 0;
  std::size_t count_;
  std::stop_token stop_;
};

/// Runs work(thread, index) once for each index 0 … count - 1, as the threads come to it, until it
/// is asked to stop.
template <class Work>
void share_out(int threads, std::size_t count, const std::stop_token& stop, Work work) {
  SharedIndices next(count, stop);
  in_parallel(threads, [&](int thread) {
    std::size_t index = 0;
    while (next.take(index)) work(thread, index);
  });
}

}  // namespace shardwise
