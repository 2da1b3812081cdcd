#include "executor/storage/file_descriptor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

FileDescriptor::~FileDescriptor() { close(); }

int FileDescriptor::close() {
  if (!is_open()) return 0;
  return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno;
}

void FileDescriptor::read(std::int64_t at, std::span<std::byte> to, const std::string& name) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(number_, to.data(), to.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
    if (got == 0) throw IoError(fmt::format("{}: ends at byte {}", name, at));
    to = to.subspan(static_cast<std::size_t>(got));
    at += got;
  }
}

}  // namespace shardwise::exec
