#include "tests/support/command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>

namespace shardwise::test {
namespace {

/// A file without a name that a child writes to; a pipe would need two readers at once.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::runtime_error("no temporary file");
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { std::fclose(file_); }

  int descriptor() const { return fileno(file_); }

  std::string text() const {
    std::string all;
    std::array<char, 4096> block;
    while (true) {
      const ssize_t n =
          pread(descriptor(), block.data(), block.size(), static_cast<off_t>(all.size()));
      if (n <= 0) return all;
      all.append(block.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  std::FILE* file_;
};

}  // namespace

std::string built(const std::string& name) {
  // All programs of a build are in one folder, this test's too.
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const Capture out;
  const Capture err;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(out.descriptor(), STDOUT_FILENO);
    dup2(err.descriptor(), STDERR_FILENO);
    execvp(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out.text(), err.text()};
}

Outcome shardwise_run(const std::vector<std::string>& arguments) {
  return run_program(built("shardwise-run"), arguments);
}

}  // namespace shardwise::test
