#pragma once

#include <condition_variable>
#include <csignal>
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
/// answer_processor_limit() answers, ends in the same way.
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

  std::string program_;
  std::string begin_;  // of the line
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Has `ulimit -t` end this process as BoundedTime does. The kernel kills at the hard limit without
/// a word, and a plain `ulimit -t` sets the soft one to the same. So the soft limit is lowered by a
/// second; of a hard limit of one second half is left.
/// \param program  for the line
void answer_processor_limit(const std::string& program);

/// What the work is at, from any thread: a line of progress.
void note_progress(const std::string& what);

/// A part of the answer that is known: as long as this lives, a limit of time prints it to standard
/// output, and ends its own line with `missing`. One at a time.
class KnownAnswer {
 public:
  KnownAnswer(const std::string& text, const std::string& missing);
  ~KnownAnswer();
  KnownAnswer(const KnownAnswer&) = delete;
  KnownAnswer& operator=(const KnownAnswer&) = delete;
};

/// Keeps a limit of time waiting as long as it lives, in the thread that writes files: a file and
/// what is said of it come to be together.
class LimitHeld {
 public:
  LimitHeld();
  ~LimitHeld();
  LimitHeld(const LimitHeld&) = delete;
  LimitHeld& operator=(const LimitHeld&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace shardwise
