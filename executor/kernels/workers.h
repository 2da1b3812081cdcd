#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardwise::exec {

/// Processors that the calling thread may run on, 1 where the system does not say.
int processors_of_thread();

/// The threads of one rank that compute. Kernels cut their work into tasks by its shape alone,
/// never by the number of threads, so results do not depend on it.
class Workers {
 public:
  /// \pre threads >= 1; with one, the caller computes alone. \throws IoError when one of them
  /// cannot be started
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Runs task(0) … task(count - 1), each once, on the caller and the other threads; returns when
  /// all are done. Tasks write to places of their own and do not throw. One call at a time.
  void run(std::int64_t count, const std::function<void(std::int64_t)>& task);

 private:
  void stop();
  void help();
  void work();

  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(std::int64_t)>* task_ = nullptr;  // guarded by mutex_
  std::int64_t next_ = 0;                                    // guarded by mutex_
  std::int64_t count_ = 0;                                   // guarded by mutex_
  std::int64_t unfinished_ = 0;                              // guarded by mutex_
  bool stop_ = false;                                        // guarded by mutex_
};

}  // namespace shardwise::exec
