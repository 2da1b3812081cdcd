#include "planner/files/trusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongestPath = 160;  // a failure is one line of 300 bytes

/// Of an open file, also one that was opened for nothing but to be named.
std::string name_of(int file) { return fmt::format("/proc/self/fd/{}", file); }

/// Whether the group of a file has its owner alone.
bool is_private_group(const struct stat& facts) {
  const passwd* const owner = ::getpwuid(facts.st_uid);
  if (owner == nullptr) return false;
  const std::string name = owner->pw_name;
  const struct group* const shared = ::getgrgid(facts.st_gid);
  if (shared == nullptr || shared->gr_name != name) return false;
  for (char* const* member = shared->gr_mem; *member != nullptr; ++member) {
    if (*member != name) return false;
  }
  return true;
}

/// Others than the owner to whom a list grants more than the mode says are among the group's bits.
bool has_access_list(int file) {
  return ::getxattr(name_of(file).c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool others_may_write(int file, const struct stat& facts) {
  if ((facts.st_mode & S_IWOTH) != 0) return true;
  if ((facts.st_mode & S_IWGRP) == 0) return false;
  return !is_private_group(facts) || has_access_list(file);
}

bool is_ours(const struct stat& facts) { return facts.st_uid == 0 || facts.st_uid == ::geteuid(); }

/// Whether an open part of a way to a file is as safe as may_keep() says.
bool is_safe(int part) {
  struct stat facts = {};
  if (::fstat(part, &facts) != 0 || !is_ours(facts)) return false;
  if (S_ISDIR(facts.st_mode)) {
    return (facts.st_mode & S_ISVTX) != 0 || !others_may_write(part, facts);
  }
  return S_ISREG(facts.st_mode) && !others_may_write(part, facts);
}

bool is_link_of_root(const std::string& path) {
  struct stat facts = {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode) && facts.st_uid == 0;
}

}  // namespace

std::string user_name(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry == nullptr ? fmt::format("user {}", user)
                          : fmt::format("{} ({})", shown(entry->pw_name), user);
}

TrustedFile::TrustedFile(const std::string& folder, const std::string& name)
    : path_(folder + "/" + name) {
  if (!open(folder, name)) return;
  struct stat facts = {};
  if (::fstat(file_, &facts) != 0 || !S_ISLNK(facts.st_mode) || !is_ours(facts)) {
    if (refusal_.empty()) check(file_, S_IFREG, "it");
    return;
  }
  // A link that is as safe as a file would be: asks the same of what it leads to.
  std::error_code none;
  const std::filesystem::path to = std::filesystem::canonical(path_, none);
  ::close(std::exchange(file_, -1));
  if (none || !refusal_.empty()) return;
  if (!open(to.parent_path().string(), to.filename().string())) return;
  if (refusal_.empty()) check(file_, S_IFREG, "it");
}

bool TrustedFile::open(const std::string& folder, const std::string& name) {
  // Opened for its name alone, nothing acts or waits.
  const int around = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (around < 0) return false;
  file_ = ::openat(around, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (file_ >= 0) check(around, S_IFDIR, "its folder");
  ::close(around);
  return file_ >= 0;
}

TrustedFile::~TrustedFile() {
  if (file_ >= 0 && !kept_) ::close(file_);
}

void TrustedFile::check(int file, mode_t type, const char* subject) {
  struct stat facts = {};
  const auto refuse = [&](std::string_view why) {
    refusal_ =
        fmt::format("{} is not trusted: {} {} (owner {}, mode {:04o})", shown(path_, kLongestPath),
                    subject, why, user_name(facts.st_uid), facts.st_mode & 07777U);
  };
  if (::fstat(file, &facts) != 0) {
    refuse(fmt::format("cannot be looked at: {}", std::strerror(errno)));
  } else if (!is_ours(facts)) {
    refuse("belongs to another user");
  } else if (S_ISLNK(facts.st_mode)) {
    refuse("is a link");
  } else if ((facts.st_mode & S_IFMT) != type) {
    refuse("is no regular file");
  } else if (others_may_write(file, facts)) {
    refuse("may be written by others");
  }
}

bool may_keep(const std::string& home, const std::string& within) {
  namespace fs = std::filesystem;
  fs::path top = fs::path(home).lexically_normal();
  if (!top.has_filename() && top.has_relative_path())
    top = top.parent_path();  // it ends with a slash
  constexpr int kFlags = O_PATH | O_CLOEXEC;
  int part = ::open(top.c_str(), kFlags | (is_link_of_root(top.string()) ? 0 : O_NOFOLLOW));
  bool safe = part < 0 ? errno == ENOENT : is_safe(part);
  for (const fs::path& name : fs::path(within)) {
    if (part < 0 || !safe) break;
    const int next = ::openat(part, name.c_str(), kFlags | O_NOFOLLOW);
    safe = next < 0 ? errno == ENOENT : is_safe(next);
    ::close(part);
    part = next;
  }
  if (part >= 0) ::close(part);
  return safe;
}

std::string TrustedFile::opened() const { return name_of(file_); }

void TrustedFile::run(char* const* argv) const {
  // A script is read by its interpreter, by this name.
  ::fcntl(file_, F_SETFD, 0);
  ::execve(opened().c_str(), argv, environ);
}

}  // namespace shardwise
