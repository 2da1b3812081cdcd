#include "executor/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace shardwise::exec {
namespace {

Diagnostic unreadable(const std::filesystem::path& path, const char* flag, const char* why) {
  return {path.string(), 0, 0, flag, fmt::format("cannot be read: {}", why), ""};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path, const char* flag) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(*vararg*)
  if (file < 0) return unreadable(path, flag, std::strerror(errno));
  struct stat status = {};
  const bool known = ::fstat(file, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file);
    return unreadable(path, flag, "not a regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {  // has nothing to map
    ::close(file);
    return MappedFile({});
  }
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (at == MAP_FAILED) return unreadable(path, flag, std::strerror(error));
  return MappedFile({static_cast<const std::byte*>(at), size});
}

MappedFile::~MappedFile() {
  // mmap gave it for reading; munmap takes it without const.
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace shardwise::exec
