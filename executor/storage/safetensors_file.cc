#include "executor/storage/safetensors_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

Diagnostic wrong(const std::string& file, std::string message, std::string hint = {}) {
  return {file, 0, 0, "", std::move(message), std::move(hint)};
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string name, FileDescriptor file, std::int64_t bytes,
                                 SafetensorsHeader header, std::int64_t data_begin)
    : name_(std::move(name)),
      file_(std::move(file)),
      bytes_(bytes),
      header_(std::move(header)),
      data_begin_(data_begin) {}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path,
                                              SymbolicLinks links) {
  const std::string name = path.string();
  const Result<int> opened = open_regular_file(path, links);
  if (!opened) return opened.problems();
  FileDescriptor file(*opened);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) {
    return wrong(name, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  const std::int64_t size = status.st_size;
  constexpr const char* kTruncated = "the file is truncated, or not a safetensors file";
  if (size < kSafetensorsLengthBytes) {
    return wrong(name, fmt::format("{} bytes are no header", size), kTruncated);
  }
  std::array<std::byte, kSafetensorsLengthBytes> first{};
  file.read(0, first, name);
  std::uint64_t length = 0;
  for (std::size_t i = first.size(); i-- > 0;) {
    length = (length << 8) | std::to_integer<std::uint64_t>(first[i]);
  }
  if (length > kLongestSafetensorsHeader) {
    return wrong(name, fmt::format("a header of {} bytes", length),
                 "at most 100000000: this is not a safetensors file");
  }
  const std::int64_t data_begin = kSafetensorsLengthBytes + static_cast<std::int64_t>(length);
  if (data_begin > size) {
    return wrong(name, fmt::format("a header of {} bytes in a file of {}", length, size),
                 kTruncated);
  }
  std::string json(length, '\0');
  file.read(kSafetensorsLengthBytes, std::as_writable_bytes(std::span(json)), name);
  Result<SafetensorsHeader> header = parse_safetensors_header(json, size - data_begin, name);
  if (!header) return header.problems();
  return SafetensorsFile(name, std::move(file), size, *std::move(header), data_begin);
}

const StoredTensor* SafetensorsFile::find(const std::string& tensor) const {
  const auto found = std::ranges::find_if(
      header_.tensors, [&](const StoredTensor& each) { return each.spec.name == tensor; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t at,
                           std::span<std::byte> to) const {
  SHARDWISE_CHECK(at >= 0 && at + std::ssize(to) <= tensor.spec.bytes(), tensor.spec.name);
  file_.read(begin_of(tensor) + at, to, name_);
}

}  // namespace shardwise::exec
