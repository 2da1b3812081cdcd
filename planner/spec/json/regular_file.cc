#include "planner/spec/json/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise {
namespace {

constexpr std::size_t kLargestFile = 100'000'000;

/// What is wrong with a file of this type; empty for a regular one.
const char* refusal(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "";
    case S_IFDIR:
      return "a folder, not a file";
    case S_IFLNK:
      return "a symbolic link, which is not followed here";
    case S_IFIFO:
      return "a pipe, not a regular file";
    case S_IFSOCK:
      return "a socket, not a regular file";
    default:
      return "a device, not a regular file";
  }
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<int> open_regular_file(const std::filesystem::path& path, SymbolicLinks links, int* error) {
  const auto wrong = [&](std::string message) {
    return Diagnostic{path.string(), 0, 0, "", std::move(message), ""};
  };
  const auto unreadable = [&](int number) {
    const bool nowhere = number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG ||
                         number == ELOOP;  // a name that leads to no file
    if (error != nullptr && !nowhere) *error = number;
    return wrong(number == ENOENT ? "no such file"
                                  : fmt::format("cannot be read: {}", std::strerror(number)));
  };
  const bool follows = links == SymbolicLinks::followed;
  struct stat status = {};
  // A device may act when it is opened, so its type is known before. What takes the file's place
  // in between is opened without waiting and looked at again.
  if (::fstatat(AT_FDCWD, path.c_str(), &status, follows ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    return unreadable(errno);
  }
  if (const char* const why = refusal(status.st_mode); *why != '\0') return wrong(why);
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follows ? 0 : O_NOFOLLOW);
  const int file = ::open(path.c_str(), flags);  // NOLINT(*vararg*)
  if (file < 0) return unreadable(errno);
  const bool known = ::fstat(file, &status) == 0;
  if (known && S_ISREG(status.st_mode)) return file;
  ::close(file);
  return wrong(known ? refusal(status.st_mode) : "cannot be read");
}

Result<std::string> read_open_file(int opened, const std::string& name) {
  const auto fail = [&] { throw IoError(fmt::format("{}: {}", name, std::strerror(errno))); };
  const std::unique_ptr<std::FILE, Close> file(::fdopen(opened, "rb"));
  if (!file) fail();
  std::string text;
  std::vector<char> block(1 << 16);
  while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0) {
    text.append(block.data(), std::fread(block.data(), 1, block.size(), file.get()));
    if (text.size() > kLargestFile) {
      return Diagnostic{name,
                        0,
                        0,
                        "",
                        fmt::format("larger than {} MB", kLargestFile / 1'000'000),
                        "a description of a model, machine or plan has a few kB"};
    }
  }
  if (std::ferror(file.get()) != 0 && errno == EAGAIN) {
    return Diagnostic{name, 0, 0, "", "has no end: the kernel adds to it", "name a file"};
  }
  if (std::ferror(file.get()) != 0) fail();
  return text;
}

Result<std::string> read_regular_file(const std::filesystem::path& path, SymbolicLinks links) {
  const Result<int> file = open_regular_file(path, links);
  if (!file) return file.problems();
  return read_open_file(*file, path.string());
}

}  // namespace shardwise
