#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace shardwise::cli {

/// One line on standard error that says what long work is at. On a terminal it is replaced, and
/// silent in the first second. Elsewhere, in a log, it is a line of its own every half minute.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Replaces the line, at most ten times a second.
  void say(const std::string& what);
  /// Takes the line away.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_;
  bool terminal_ = false;
  bool shown_ = false;
};

/// Progress of work that says nothing of itself: its name, and for how long it runs.
class Meanwhile {
 public:
  explicit Meanwhile(std::string work);
  ~Meanwhile();
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  void tell(const std::string& work);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace shardwise::cli
