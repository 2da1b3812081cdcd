#include "planner/files/trusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

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

/// A file that is closed.
class Opened {
 public:
  explicit Opened(int file) : file_(file) {}
  Opened(const Opened&) = delete;
  Opened& operator=(Opened&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Opened() {
    if (file_ >= 0) ::close(file_);
  }
  int file() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

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
  file_ = open(path_);
  if (file_ >= 0 && refusal_.empty()) check(file_, S_IFREG, "it");
}

/// Follows the way part by part. Links are read here and not followed by the kernel, so that none
/// of another user is. \returns -1 where it leads nowhere, or was refused
int TrustedFile::open(const std::string& path) {
  // Opened for its name alone, nothing acts or waits.
  constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  std::vector<std::string> left;  // of the way, the next one last
  const auto put = [&left](const std::string& way) {
    const std::filesystem::path parts = std::filesystem::path(way).relative_path();
    std::vector<std::string> names(parts.begin(), parts.end());
    left.insert(left.end(), names.rbegin(), names.rend());
  };
  put(path);
  Opened part(::open(path.starts_with('/') ? "/" : ".", kFlags | O_DIRECTORY));
  int links = 0;
  while (part.file() >= 0 && !left.empty()) {
    const std::string name = std::exchange(left.back(), "");
    left.pop_back();
    if (name.empty()) continue;
    Opened next(::openat(part.file(), name.c_str(), kFlags));
    if (next.file() < 0) return -1;
    const bool last = left.empty();
    if (last && refusal_.empty()) check(part.file(), S_IFDIR, "its folder");
    struct stat facts = {};
    if (::fstat(next.file(), &facts) == 0 && S_ISLNK(facts.st_mode)) {
      if (!is_ours(facts)) {
        const bool nowhere =
            ::access(path_.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
        if (last || !nowhere) check(next.file(), S_IFLNK, last ? "it" : "a link on the way to it");
        return -1;
      }
      std::array<char, PATH_MAX> to{};
      const ssize_t length = ::readlinkat(next.file(), "", to.data(), to.size());
      if (length <= 0 || length >= std::ssize(to) || ++links > kMostLinks) return -1;
      const std::string target(to.data(), static_cast<std::size_t>(length));
      put(target);
      if (target.starts_with('/')) part = Opened(::open("/", kFlags | O_DIRECTORY));
    } else {
      part = std::move(next);
    }
  }
  return part.release();
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
