#include "tests/executor/failures/running_program.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace shardwise::exec::test {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{2};

/// What /proc says of a process.
struct Process {
  std::string name;
  char state = 'X';
  pid_t parent = 0;
};

// Source: proc(5), /proc/[pid]/stat: pid (name) state parent …
Process look_at(const std::filesystem::path& folder) {
  std::ifstream in(folder / "stat");
  std::string text;
  std::getline(in, text);
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end + 4 > text.size()) return {};
  Process process;
  process.name = text.substr(begin + 1, end - begin - 1);
  process.state = text[end + 2];
  std::from_chars(text.data() + end + 4, text.data() + text.size(), process.parent);
  return process;
}

bool is_there(pid_t process) {
  const char state = look_at(std::filesystem::path("/proc") / std::to_string(process)).state;
  return state != 'X' && state != 'Z';
}

}  // namespace

RunningProgram::RunningProgram(const std::string& program,
                               const std::vector<std::string>& arguments, const std::string& out,
                               const std::string& err) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ > 0) return;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  constexpr int kMode = 0666;
  const int nothing = open("/dev/null", O_RDONLY);
  const int out_file = open(out.c_str(), kFlags, kMode);
  const int err_file = open(err.c_str(), kFlags, kMode);
  if (nothing < 0 || out_file < 0 || err_file < 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(out_file, STDOUT_FILENO);
  dup2(err_file, STDERR_FILENO);
  execvp(program.c_str(), argv.data());
  _exit(127);
}

RunningProgram::~RunningProgram() {
  if (!ended_) {
    kill(process_, SIGKILL);
    waitpid(process_, &status_, 0);
  }
  for (const pid_t child : seen_) {
    if (is_there(child)) kill(child, SIGKILL);
  }
}

std::vector<pid_t> RunningProgram::children(const std::string& name) {
  // The kernel cuts names to 15 characters.
  const std::string shown = name.substr(0, 15);
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename().string();
    pid_t child = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), child);
    if (read.ec != std::errc()) continue;
    const Process process = look_at(entry.path());
    if (process.parent == process_ && process.name == shown) found.push_back(child);
  }
  for (const pid_t child : found) {
    if (std::ranges::find(seen_, child) == seen_.end()) seen_.push_back(child);
  }
  return found;
}

void RunningProgram::signal(int number) const { kill(process_, number); }

bool RunningProgram::wait(std::chrono::milliseconds most) {
  const steady_clock::time_point end = steady_clock::now() + most;
  while (!ended_) {
    ended_ = waitpid(process_, &status_, WNOHANG) == process_;
    if (ended_ || steady_clock::now() > end) break;
    std::this_thread::sleep_for(kLook);
  }
  return ended_;
}

int RunningProgram::exit_code() const {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

bool wait_until_gone(const std::vector<pid_t>& processes, std::chrono::milliseconds most) {
  const steady_clock::time_point end = steady_clock::now() + most;
  while (std::ranges::any_of(processes, is_there)) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace shardwise::exec::test
