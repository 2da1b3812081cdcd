#include "cli/verbs/other_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::cli {
namespace {

std::vector<std::string> folders_of_programs() {
  std::vector<std::string> folders;
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) folders.push_back(self.parent_path().string());
  const char* const search = std::getenv("PATH");
  std::string_view rest = search == nullptr ? "" : search;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (folder.starts_with('/')) folders.emplace_back(folder);
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
  }
  return folders;
}

/// The first that is there, or nullptr, which is said. \throws IoError  where it is not trusted
std::unique_ptr<TrustedFile> find(const OtherProgram& other) {
  for (const std::string& folder : folders_of_programs()) {
    auto program = std::make_unique<TrustedFile>(folder, other.name);
    if (!program->exists()) continue;
    if (!program->refusal().empty()) throw IoError(program->refusal());
    return program;
  }
  fmt::print(stderr,
             "shardwise: {} is not installed: it is neither in this program's folder nor on PATH "
             "(build it with {}=on)\n",
             other.name, other.built_by);
  return nullptr;
}

/// The words of its command line.
class CommandLine {
 public:
  CommandLine(const OtherProgram& other, const std::string& path,
              const std::vector<std::string>& arguments)
      : words_({path}) {
    if (other.verb != nullptr) words_.emplace_back(other.verb);
    words_.insert(words_.end(), arguments.begin(), arguments.end());
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char* const* argv() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

[[noreturn]] void cannot_start(const std::string& path, int error) {
  throw IoError(fmt::format("cannot start {}: {}", path, std::strerror(error)));
}

/// Until it is there no interrupt from the terminal ends this program.
class NoInterrupt {
 public:
  NoInterrupt() {
    struct sigaction ignored = {};
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &ignored, &before_[i]);
    }
  }
  NoInterrupt(const NoInterrupt&) = delete;
  NoInterrupt& operator=(const NoInterrupt&) = delete;
  ~NoInterrupt() { restore(); }
  void restore() const {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT};
  std::array<struct sigaction, kSignals.size()> before_{};
};

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t count = ::read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

bool installed(const OtherProgram& other) { return find(other) != nullptr; }

ExitCode hand_over(const OtherProgram& other, const std::vector<std::string>& arguments) {
  const std::unique_ptr<TrustedFile> program = find(other);
  if (!program) return ExitCode::world_broke;
  program->run(CommandLine(other, program->path(), arguments).argv());
  cannot_start(program->path(), errno);
}

EndedProgram run_to_end(const OtherProgram& other, const std::vector<std::string>& arguments) {
  const std::unique_ptr<TrustedFile> program = find(other);
  if (!program) throw IoError(fmt::format("{} is gone", other.name));
  const CommandLine words(other, program->path(), arguments);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) cannot_start(program->path(), errno);
  std::fflush(stdout);
  const NoInterrupt waits;
  const pid_t child = ::fork();
  if (child == 0) {
    waits.restore();
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    program->run(words.argv());
    constexpr int kNotStarted = 127;
    ::_exit(kNotStarted);
  }
  const int error = errno;
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    cannot_start(program->path(), error);
  }
  EndedProgram ended;
  ended.said = read_all(pipe[0]);
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  return ended;
}

}  // namespace shardwise::cli
