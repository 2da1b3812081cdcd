#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace shardwise::exec::test {

/// Longest time of a run to end on a machine that is busy with other tests.
inline constexpr std::chrono::milliseconds kLongWait{120'000};

/// A program that runs beside the test, with its output in files. It does not outlive the test.
class RunningProgram {
 public:
  RunningProgram(const std::string& program, const std::vector<std::string>& arguments,
                 const std::string& out, const std::string& err);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t process() const { return process_; }
  /// Its children that run the program `name`.
  std::vector<pid_t> children(const std::string& name);
  void signal(int number) const;
  /// Waits for its end. \returns whether it came in time
  bool wait(std::chrono::milliseconds most);
  /// The exit code; 128 and the number of the signal that ended it. \pre wait() returned true
  int exit_code() const;

 private:
  pid_t process_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::vector<pid_t> seen_;  // children, some of which may have to be ended
};

/// Waits until none of the processes is there. \returns whether that came in time
bool wait_until_gone(const std::vector<pid_t>& processes, std::chrono::milliseconds most);

}  // namespace shardwise::exec::test
