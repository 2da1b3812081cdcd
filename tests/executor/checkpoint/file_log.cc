#include "tests/executor/checkpoint/file_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>  // NOLINT(modernize-deprecated-headers): renameat2 is Linux's
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <mutex>

namespace shardwise::exec::test {
namespace {

std::mutex watching;         // an operation and its record are one
FileLog* log_now = nullptr;  // guarded by watching

ino_t inode_of(const std::filesystem::path& path) {
  struct stat status = {};  // NOLINT(misc-const-correctness): written by the call
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}
ino_t inode_of(int file) {
  struct stat status = {};  // NOLINT(misc-const-correctness): written by the call
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

FileLog::FileLog(const std::filesystem::path& root) {
  const std::lock_guard<std::mutex> lock(watching);
  numbers_[inode_of(root)] = next_++;
  log_now = this;
}

FileLog::~FileLog() {
  const std::lock_guard<std::mutex> lock(watching);
  log_now = nullptr;
}

int FileLog::number_of(const std::filesystem::path& path) const {
  const auto found = numbers_.find(inode_of(path));
  return found == numbers_.end() ? kNothing : found->second;
}

int FileLog::number_of(int file) const {
  const auto found = numbers_.find(inode_of(file));
  return found == numbers_.end() ? kNothing : found->second;
}

void FileLog::name(const std::filesystem::path& path, ino_t inode) {
  const int folder = number_of(path.parent_path());
  if (folder == kNothing) return;
  numbers_[inode] = next_;
  operations_.push_back(
      {FileOperation::Kind::names, folder, {{path.filename().string(), next_++}}, 0, {}});
}

void FileLog::opened(const std::filesystem::path& path, int file, bool fresh, bool truncated) {
  if (fresh) return name(path, inode_of(file));
  if (truncated) cut(file);
}

void FileLog::cut(int file) {
  const int number = number_of(file);
  if (number != kNothing) operations_.push_back({FileOperation::Kind::truncate, number, {}, 0, {}});
}

void FileLog::wrote(int file, const void* bytes, std::size_t count, std::size_t at) {
  const int number = number_of(file);
  if (number == kNothing) return;
  operations_.push_back({FileOperation::Kind::write,
                         number,
                         {},
                         at,
                         std::string(static_cast<const char*>(bytes), count)});
}

void FileLog::kept(int file) {
  const int number = number_of(file);
  if (number != kNothing) operations_.push_back({FileOperation::Kind::keep, number, {}, 0, {}});
}

void FileLog::made(const std::filesystem::path& folder) { name(folder, inode_of(folder)); }

void FileLog::renamed(int was_from, int was_to, const std::filesystem::path& from,
                      const std::filesystem::path& to, bool exchanged) {
  if (was_from == kNothing) return;
  EXPECT_EQ(from.parent_path(), to.parent_path());
  operations_.push_back({FileOperation::Kind::names,
                         number_of(to.parent_path()),
                         {{from.filename().string(), exchanged ? was_to : kNothing},
                          {to.filename().string(), was_from}},
                         0,
                         {}});
}

void FileLog::removed(int folder, const std::string& name) {
  if (folder == kNothing) return;
  operations_.push_back({FileOperation::Kind::names, folder, {{name, kNothing}}, 0, {}});
}

}  // namespace shardwise::exec::test

// What the C library has, with a record. Source: the manual pages open(2), write(2), …
namespace {

using shardwise::exec::test::log_now;
using shardwise::exec::test::watching;

int renamed(const char* from, const char* to, unsigned flags) {
  const std::lock_guard<std::mutex> lock(watching);
  const int was_from = log_now != nullptr ? log_now->number_of(std::filesystem::path(from)) : 0;
  const int was_to = log_now != nullptr ? log_now->number_of(std::filesystem::path(to)) : 0;
  const long result = ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
  if (result == 0 && log_now != nullptr) {
    log_now->renamed(was_from, was_to, from, to, (flags & RENAME_EXCHANGE) != 0);
  }
  return static_cast<int>(result);
}

int removed(int at, const char* path, int flags) {
  const std::lock_guard<std::mutex> lock(watching);
  const long result = ::syscall(SYS_unlinkat, at, path, flags);
  if (result == 0 && log_now != nullptr) {
    const std::filesystem::path name(path);
    log_now->removed(
        at == AT_FDCWD ? log_now->number_of(name.parent_path()) : log_now->number_of(at),
        name.filename().string());
  }
  return static_cast<int>(result);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const std::lock_guard<std::mutex> lock(watching);
  const bool fresh = (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (file >= 0 && log_now != nullptr) {
    log_now->opened(path, file, fresh, (flags & O_TRUNC) != 0);
  }
  return file;
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  const std::lock_guard<std::mutex> lock(watching);
  const auto written = static_cast<ssize_t>(::syscall(SYS_write, file, bytes, count));
  if (written > 0 && log_now != nullptr) {
    const auto end = static_cast<std::size_t>(::lseek(file, 0, SEEK_CUR));
    const auto count_written = static_cast<std::size_t>(written);
    log_now->wrote(file, bytes, count_written, end - count_written);
  }
  return written;
}

ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t at) {
  const std::lock_guard<std::mutex> lock(watching);
  const auto written = static_cast<ssize_t>(::syscall(SYS_pwrite64, file, bytes, count, at));
  if (written > 0 && log_now != nullptr) {
    log_now->wrote(file, bytes, static_cast<std::size_t>(written), static_cast<std::size_t>(at));
  }
  return written;
}

int ftruncate(int file, off_t length) noexcept {
  EXPECT_EQ(length, 0);
  const std::lock_guard<std::mutex> lock(watching);
  const auto result = static_cast<int>(::syscall(SYS_ftruncate, file, length));
  if (result == 0 && log_now != nullptr) log_now->cut(file);
  return result;
}

int fsync(int file) {
  const std::lock_guard<std::mutex> lock(watching);
  const auto result = static_cast<int>(::syscall(SYS_fsync, file));
  if (result == 0 && log_now != nullptr) log_now->kept(file);
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  const std::lock_guard<std::mutex> lock(watching);
  const auto result = static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  if (result == 0 && log_now != nullptr) log_now->made(path);
  return result;
}

int rename(const char* from, const char* to) noexcept { return renamed(from, to, 0); }

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  EXPECT_EQ(from_at, AT_FDCWD);
  EXPECT_EQ(to_at, AT_FDCWD);
  return renamed(from, to, flags);
}

int unlinkat(int at, const char* path, int flags) noexcept { return removed(at, path, flags); }

int remove(const char* path) noexcept {
  const int result = removed(AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? removed(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

}  // extern "C"
