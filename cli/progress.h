#pragma once

#include <chrono>
#include <string>

namespace shardwise::cli {

/// One line on the terminal's standard error that says what long work is at. Silent in the first
/// second and where standard error is no terminal.
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

}  // namespace shardwise::cli
