#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace shardwise::view {

/// Does what takes longer than a frame, one job at a time, on a thread of its own. A job belongs to
/// a kind ("rows"): a newer one of that kind stops an older one, whose result is dropped wherever
/// it is. Results are applied by the thread that calls collect(), so that state has one owner.
class Worker {
 public:
  /// Applies a result, on the collecting thread.
  using Apply = std::function<void()>;
  /// Worker as its job sees it.
  struct Task {
    std::stop_token stop;  // a newer job of its kind has come
    /// Hands out a result before the job is done.
    std::function<void(Apply apply)> publish;
  };
  /// Works until it is done or asked to stop. An exception in it is thrown by collect().
  using Job = std::function<Apply(const Task& task)>;

  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// \returns the job's generation: 1, 2, 3 …
  std::uint64_t post(const std::string& kind, Job job);
  /// Stops the job of that kind and drops its result, wherever it is.
  void drop(const std::string& kind);
  /// Applies the results that are there and current. \returns whether there was one
  bool collect();
  /// Whether a job waits or runs, or a result was not collected.
  bool busy() const;
  /// Returns when all jobs are done and their results wait for collect().
  void finish();
  /// Returns when a job has ended since the last collect(); at once where none is left.
  void finish_one();

  /// Has `wake` called, on the worker's thread, when a result waits for collect() and when a job
  /// has ended. Null: nobody is told.
  void on_result(std::function<void()> wake);

  /// Until release(), jobs that are posted wait: a test decides when work is done.
  void hold();
  void release();

 private:
  struct Entry {
    std::string kind;
    std::uint64_t generation = 0;
    Job job;
    std::stop_source stop;
  };
  struct Done {
    std::string kind;
    std::uint64_t generation = 0;
    Apply apply;
  };
  void run(const std::stop_token& end);
  void publish(const Entry& entry, Apply apply);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> waiting_;
  std::deque<Done> done_;
  std::map<std::string, std::uint64_t> newest_;  // generation by kind
  std::stop_source running_;                     // of the job that runs
  std::string running_kind_;                     // empty: none runs
  std::uint64_t generations_ = 0;
  std::function<void()> wake_;
  bool ended_ = false;  // a job has, since the last collect()
  bool held_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace shardwise::view
