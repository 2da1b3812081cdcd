#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "planner/spec/text/units.h"

namespace shardwise {

/// The flag for how long a question may compute, the limit where nobody states one, and the most
/// that it takes.
inline constexpr const char* kTimeLimitFlag = "--time-limit";
inline constexpr Seconds kUsualTimeLimit(600);
inline constexpr Seconds kMostTimeLimit(100.0 * 365 * 86400);

/// As long as it lives, this process may compute for `limit`: then it ends with exit code 3 and one
/// line on standard error, with the limit and what note_progress() said last. Files that were not
/// kept are taken away (AtomicFileSet); those that are being kept are all kept first. What
/// `ulimit -St` ends, ends in the same way; a hard limit kills.
///
/// Only time in which the process computes counts, and no second twice where several threads do.
/// So neither a stopped process nor one whose reader or other program is slow is ended. One at a
/// time, made by the thread that writes files.
class BoundedTime {
 public:
  /// \param program  for the line  \param flag  that a user raises the limit by
  BoundedTime(Seconds limit, const std::string& program, const std::string& flag);
  ~BoundedTime();
  BoundedTime(const BoundedTime&) = delete;
  BoundedTime& operator=(const BoundedTime&) = delete;

 private:
  void count(Seconds limit, pthread_t whom);

  std::string begin_;  // of the line
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

/// What the work is at, from any thread: a line of progress.
void note_progress(const std::string& what);

}  // namespace shardwise
