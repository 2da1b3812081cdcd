#include "executor/device/python_folders.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "planner/files/trusted_file.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLongestAnswer{5};
constexpr std::size_t kMostBytes = std::size_t{64} << 10;
constexpr const char* kQuestion =
    "import site, sys, sysconfig\n"
    "print(*sys.path, sysconfig.get_path('platlib'), site.getusersitepackages(), sep='\\n')";

void add_if_there(const fs::path& folder, std::vector<std::string>& folders) {
  std::error_code none;
  if (fs::is_directory(folder, none)) folders.push_back(folder.string());
}

/// Between fork and exec a process of several threads may do little.
[[noreturn]] void answer(const TrustedFile& python, char* const* argv, int to) {
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::dup2(to, STDOUT_FILENO);
  python.run(argv);
  _exit(127);
}

/// What is written before the end of the file, the limit or the deadline.
std::string read_all(int from) {
  const auto until = std::chrono::steady_clock::now() + kLongestAnswer;
  std::string text;
  std::array<char, 4096> part{};
  while (text.size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd waited = {from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waited, 1, static_cast<int>(left.count())) <= 0) return "";
    const ssize_t count = ::read(from, part.data(), part.size());
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::string ask(const TrustedFile& python) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  // An environment is known by the path that its interpreter is called by.
  std::array<std::string, 4> words = {python.path(), "-I", "-c", kQuestion};
  std::array<char*, 5> argv = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                               nullptr};
  const pid_t asked = ::fork();
  if (asked == 0) answer(python, argv.data(), ends[1]);
  ::close(ends[1]);
  std::string said = asked > 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  if (asked > 0) {
    ::kill(asked, SIGKILL);
    ::waitpid(asked, nullptr, 0);
  }
  return said;
}

std::vector<std::string> absolute_lines(const std::string& text) {
  std::vector<std::string> folders;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('/')) folders.push_back(line);
  }
  return folders;
}

}  // namespace

void add_wheels(const fs::path& nvidia, const std::string& package,
                std::vector<std::string>& folders) {
  for (const std::string& name : {package, std::string("cu13")}) {
    add_if_there(nvidia / name / "lib", folders);
  }
}

std::vector<std::string> folders_of_wheels(const std::string& root, const std::string& package) {
  std::vector<std::string> folders;
  add_if_there(root, folders);
  add_if_there(fs::path(root) / "lib", folders);
  add_wheels(root, package, folders);
  add_wheels(fs::path(root) / "nvidia", package, folders);
  std::error_code none;
  for (const auto& python : fs::directory_iterator(fs::path(root) / "lib", none)) {
    add_wheels(python.path() / "site-packages" / "nvidia", package, folders);
  }
  return folders;
}

std::vector<std::string> folders_of_python(std::string_view path) {
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (!folder.starts_with('/')) continue;
    const TrustedFile python(std::string(folder), "python3");
    if (!python.exists()) continue;
    return python.refusal().empty() ? absolute_lines(ask(python)) : std::vector<std::string>();
  }
  return {};
}

const std::vector<std::string>& python_folders() {
  static const std::vector<std::string> kFolders = [] {
    const char* const path = std::getenv("PATH");
    return folders_of_python(path == nullptr ? "" : path);
  }();
  return kFolders;
}

}  // namespace shardwise::exec
