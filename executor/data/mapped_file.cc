#include "executor/data/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "planner/spec/json/regular_file.h"

namespace shardwise::exec {
namespace {

Diagnostic unreadable(const std::filesystem::path& path, const char* flag, const char* why) {
  return {path.string(), 0, 0, flag, fmt::format("cannot be read: {}", why), ""};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path, const char* flag) {
  const Result<int> opened = open_regular_file(path);
  if (!opened) {
    Diagnostic problem = opened.problems().front();
    problem.path = flag;
    return problem;
  }
  const int file = *opened;
  struct stat status = {};
  if (::fstat(file, &status) != 0) {
    const int error = errno;
    ::close(file);
    return unreadable(path, flag, std::strerror(error));
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
