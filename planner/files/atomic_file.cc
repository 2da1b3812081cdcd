#include "planner/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "planner/files/output_place.h"
#include "planner/spec/text/error.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPermissions = 07777;

/// A name beside `place` that nobody else has thought of.
std::string name_beside(const std::string& place) {
  constexpr std::size_t kLongestName = 200;  // of the 255 bytes that file systems give a name
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    throw IoError(fmt::format("no random number: {}", std::strerror(errno)));
  }
  const fs::path path(place);
  const std::string name =
      fmt::format("{}.{:016x}.part", path.filename().string().substr(0, kLongestName), random);
  return (path.parent_path() / name).string();
}

}  // namespace

FileCalls& file_calls() {
  static FileCalls calls = {::write, ::fsync, ::close, std::rename};
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
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr int kTries = 100;
  for (int i = 0; file_ < 0 && i < kTries; ++i) {
    std::string name = name_beside(place_);
    // One that replaces another is closed to others until it has that one's mode.
    file_ = ::open(name.c_str(), kFlags, replaces ? 0600 : 0666);
    if (file_ >= 0) temporary_ = std::move(name);
    if (file_ < 0 && errno != EEXIST) fail(errno);
  }
  if (file_ < 0) fail(EEXIST);
  if (replaces) take_over_owner();
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)) {}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  discard();
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
}

std::string AtomicFile::folder() const { return fs::path(place_).parent_path().string(); }

void AtomicFile::discard() const noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

}  // namespace shardwise
