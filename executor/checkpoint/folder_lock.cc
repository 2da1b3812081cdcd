#include "executor/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{20};
/// How long a holder may take to write its name once it has the lock.
constexpr milliseconds kName{1000};

constexpr off_t kToTheEnd = 0;  // as a length: all bytes from the first on

/// Bytes of the lock file, locked or unlocked. \returns 0, or the error
int change(int file, short type, off_t first, off_t length) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = length;
  return ::fcntl(file, F_OFD_SETLK, &range) == 0 ? 0 : errno;  // NOLINT(*vararg*)
}

/// Whether another process has the byte of rank 0.
bool first_is_taken(int file) {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  return ::fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;  // NOLINT(*vararg*)
}

bool is_taken(int error) { return error == EAGAIN || error == EACCES; }

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// Who has the lock, by what it wrote: "4711 node07".
struct Holder {
  pid_t process = 0;
  std::string host;

  /// It has no name yet, or left this one when it was killed.
  bool is_stale() const {
    return process <= 0 || (host == this_host() && ::kill(process, 0) != 0 && errno == ESRCH);
  }
  std::string text() const {
    if (process <= 0) return "another shardwise-run";
    return fmt::format("shardwise-run pid {} on {}", process, host);
  }
};

Holder holder_of(int file) {
  std::array<char, 300> bytes{};
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  Holder holder;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), holder.process);
  if (read.ec != std::errc()) return {};
  const std::string_view rest = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  if (!rest.starts_with(' ') || !rest.ends_with('\n')) return {};
  holder.host = shown(rest.substr(1, rest.size() - 2), bytes.size());
  return holder;
}

Diagnostic lock_problem(const std::string& name, std::string message, std::string hint) {
  return {name, 0, 0, "--checkpoint-dir", std::move(message), std::move(hint)};
}

Result<FileDescriptor> open_lock(const fs::path& path) {
  const std::string name = path.string();
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  constexpr int kMode = 0666;
  struct stat status = {};
  if (::lstat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return lock_problem(name, "not a regular file",
                        "shardwise-run keeps its lock there; remove it");
  }
  FileDescriptor file(::open(name.c_str(), kFlags, kMode));  // NOLINT(*vararg*)
  if (file.is_open()) return file;
  return lock_problem(name, fmt::format("cannot be opened: {}", std::strerror(errno)),
                      "name a folder that can be created or written to");
}

}  // namespace

Result<FolderLock> FolderLock::take(const fs::path& folder, milliseconds ending_job) {
  Result<FileDescriptor> opened = open_lock(folder / kLockName);
  if (!opened) return opened.problems();
  FileDescriptor file = *std::move(opened);
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const int error = change(file.number(), F_WRLCK, 0, kToTheEnd);
    if (error == 0) break;
    if (!is_taken(error)) return FolderLock(std::move(file), std::strerror(error), true);
    const bool ending = !first_is_taken(file.number());
    const Holder holder = holder_of(file.number());
    const bool waits = ending || holder.is_stale();
    if (!waits || Clock::now() - begin > (ending ? ending_job : kName)) {
      return lock_problem(
          folder.string(),
          ending ? fmt::format("is in use by processes that {} left behind", holder.text())
                 : fmt::format("is in use by {}", holder.text()),
          "wait until that run has ended, or name another folder");
    }
    std::this_thread::sleep_for(kLook);
  }
  const std::string text = fmt::format("{} {}\n", ::getpid(), this_host());
  // The name is for people: a disk that is full says so when a checkpoint is written.
  const bool named = ::ftruncate(file.number(), 0) == 0 &&
                     ::pwrite(file.number(), text.data(), text.size(), 0) > 0;
  static_cast<void>(named);
  change(file.number(), F_UNLCK, 1, kToTheEnd);
  return FolderLock(std::move(file), "", true);
}

Result<FolderLock> FolderLock::join(const fs::path& folder, int rank) {
  Result<FileDescriptor> opened = open_lock(folder / kLockName);
  if (!opened) return opened.problems();
  const int error = change(opened->number(), F_WRLCK, rank, 1);
  if (is_taken(error)) {
    return lock_problem(folder.string(), fmt::format("is in use by rank {} of another run", rank),
                        "wait until that run has ended, or name another folder");
  }
  return FolderLock(*std::move(opened), error == 0 ? "" : std::strerror(error), false);
}

std::optional<pid_t> process_that_locks(const fs::path& folder) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  const FileDescriptor file(::open((folder / kLockName).c_str(), kFlags));  // NOLINT(*vararg*)
  struct stat status = {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return {};
  if (!first_is_taken(file.number())) return {};
  const Holder holder = holder_of(file.number());
  if (holder.process <= 0 || holder.host != this_host()) return {};
  return holder.process;
}

FolderLock::~FolderLock() {
  if (!file_.is_open() || !first_ || !unlocked_.empty()) return;
  const bool cleared = ::ftruncate(file_.number(), 0) == 0;
  static_cast<void>(cleared);
}

}  // namespace shardwise::exec
