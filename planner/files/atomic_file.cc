#include "planner/files/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "planner/files/output_place.h"
#include "planner/spec/text/error.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPermissions = 07777;

constexpr std::string_view kPart = ".part";
constexpr std::string_view kUnlockedPart = ".part.unlocked";
constexpr std::size_t kDigits = 16;  // of the random number in a name

/// What names of files that become `place` begin with.
std::string begin_of_name(const std::string& place) {
  constexpr std::size_t kLongestName = 200;  // of the 255 bytes that file systems give a name
  return fs::path(place).filename().string().substr(0, kLongestName) + ".";
}

/// A name beside `place` that nobody else has thought of.
std::string name_beside(const std::string& place, std::string_view end) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    throw IoError(fmt::format("no random number: {}", std::strerror(errno)));
  }
  const std::string name = fmt::format("{}{:0{}x}{}", begin_of_name(place), random, kDigits, end);
  return (fs::path(place).parent_path() / name).string();
}

bool is_name_of_part(std::string_view name, std::string_view begin) {
  if (name.size() != begin.size() + kDigits + kPart.size()) return false;
  if (!name.starts_with(begin) || !name.ends_with(kPart)) return false;
  return name.substr(begin.size(), kDigits).find_first_not_of("0123456789abcdef") ==
         std::string_view::npos;
}

/// \returns 0, EWOULDBLOCK where somebody else has it locked, or why the system gives no locks
int lock(int file) {
  for (;;) {
    if (file_calls().flock(file, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

/// Takes away a file that its writer did not: it is this user's, and nobody has it locked.
void remove_if_left(int folder, const char* name) {
  const auto is_own = [](const struct stat& facts) {
    return S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid();
  };
  struct stat facts = {};
  if (::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !is_own(facts)) return;
  constexpr int kFlags = O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
  int file = ::openat(folder, name, O_RDWR | kFlags);  // NFS locks no file that is only read
  if (file < 0) file = ::openat(folder, name, O_RDONLY | kFlags);
  if (file < 0) return;
  if (::fstat(file, &facts) == 0 && is_own(facts) && lock(file) == 0) {
    ::unlinkat(folder, name, 0);
  }
  ::close(file);
}

/// What writers of `place` that were killed have left beside it. Where the folder may not be read,
/// nobody knows.
void remove_left_parts(const std::string& place) {
  const std::string parent = fs::path(place).parent_path().string();
  DIR* const folder = ::opendir(parent.empty() ? "." : parent.c_str());
  if (folder == nullptr) return;
  const std::string begin = begin_of_name(place);
  std::vector<std::string> left;
  while (const dirent* const each = ::readdir(folder)) {
    if (is_name_of_part(each->d_name, begin)) left.emplace_back(each->d_name);
  }
  for (const std::string& name : left) remove_if_left(::dirfd(folder), name.c_str());
  ::closedir(folder);
}

}  // namespace

FileCalls& file_calls() {
  static FileCalls calls = {::write, ::fsync, ::close, std::rename, ::flock};
  return calls;
}

int write_bytes(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = file_calls().write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

void sync_folder(const std::string& folder) {
  const std::string name = folder.empty() ? "." : folder;
  const int opened = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // One may write into a folder that one may not read: its names last as the system has it.
  if (opened < 0 && errno == EACCES) return;
  int error = opened < 0 || file_calls().fsync(opened) != 0 ? errno : 0;
  if (opened >= 0) ::close(opened);
  if (error == EINVAL) error = 0;  // some file systems do not synchronise folders, and say so
  if (error == 0) return;
  throw IoError(fmt::format("{}: cannot be synchronised: {}", name, std::strerror(error)));
}

AtomicFile::AtomicFile(const std::string& path, SymbolicLinks links) : path_(path), place_(path) {
  if (links == SymbolicLinks::followed) {
    const OutputPlace place = find_output(path);
    if (!place.planted_by.empty()) {
      throw IoError(fmt::format("{}: cannot be written: it {}", path, place.refusal()));
    }
    place_ = place.path;
  }
  struct stat there = {};
  if (links == SymbolicLinks::refused && ::lstat(path.c_str(), &there) == 0 &&
      S_ISLNK(there.st_mode)) {
    throw IoError(
        fmt::format("{}: cannot be written: a symbolic link, which is not followed here", path));
  }
  const bool replaces = ::stat(place_.c_str(), &there) == 0;
  if (replaces && S_ISDIR(there.st_mode)) fail(EISDIR);
  // Renaming asks the folder alone; a file that is protected from writing stays.
  if (replaces && ::faccessat(AT_FDCWD, place_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);
  remove_left_parts(place_);
  // One that replaces another is closed to others until it has that one's mode.
  create(replaces ? 0600 : 0666);
  if (replaces) take_over_owner();
}

void AtomicFile::create(mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    temporary_ = name_beside(place_, kPart);
    file_ = ::open(temporary_.c_str(), kFlags, mode);
    if (file_ < 0) {
      temporary_.clear();
      if (errno == EEXIST) continue;
      fail(errno);
    }
    // Another writer may have taken it for one that was left before it was locked. One that no lock
    // protects takes a name that others leave.
    const int unlocked = lock(file_);
    bool is_mine = unlocked != EWOULDBLOCK;
    if (is_mine && unlocked != 0) {
      const std::string kept = name_beside(place_, kUnlockedPart);
      is_mine = std::rename(temporary_.c_str(), kept.c_str()) == 0;
      if (is_mine) temporary_ = kept;
    }
    struct stat mine = {};
    if (is_mine && ::fstat(file_, &mine) == 0 && mine.st_nlink > 0) {
      lock_ = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
      return;
    }
    ::close(std::exchange(file_, -1));
    discard();
  }
  temporary_.clear();
  fail(EEXIST);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)),
      lock_(std::exchange(other.lock_, -1)) {}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  discard();
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFile::take_over_owner() {
  struct stat there = {};
  struct stat mine = {};
  if (::stat(place_.c_str(), &there) != 0 || ::fstat(file_, &mine) != 0) return;
  mode_t mode = there.st_mode & kPermissions;
  if (mine.st_uid != there.st_uid || mine.st_gid != there.st_gid) {
    const bool both = ::fchown(file_, there.st_uid, there.st_gid) == 0;
    const bool group = both || ::fchown(file_, static_cast<uid_t>(-1), there.st_gid) == 0;
    if (!both) mode &= ~static_cast<mode_t>(S_ISUID);
    if (!group) mode &= ~static_cast<mode_t>(S_ISGID);
  }
  if (::fchmod(file_, mode) == 0) return;
  const int error = errno;
  ::close(std::exchange(file_, -1));
  discard();
  ::close(std::exchange(lock_, -1));
  fail(error);
}

void AtomicFile::fail(int error) const {
  throw IoError(fmt::format("{}: cannot be written: {}", path_, std::strerror(error)));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_bytes(file_, bytes); error != 0) fail(error);
}

void AtomicFile::finish() {
  if (file_calls().fsync(file_) != 0) fail(errno);
  if (file_calls().close(std::exchange(file_, -1)) != 0) fail(errno);
}

void AtomicFile::publish() {
  if (file_calls().rename(temporary_.c_str(), place_.c_str()) != 0) fail(errno);
  temporary_.clear();
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

std::string AtomicFile::folder() const { return fs::path(place_).parent_path().string(); }

void AtomicFile::discard() const noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

}  // namespace shardwise
