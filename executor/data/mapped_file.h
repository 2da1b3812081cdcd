#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// A file's bytes, mapped for reading: pages come from the disk when they are looked at, and are
/// shared by all processes of a machine.
class MappedFile {
 public:
  /// \param flag  what named the file ("--data"), for the message
  /// \returns a problem when it is not there, not readable or not a regular file
  static Result<MappedFile> open(const std::filesystem::path& path, const char* flag);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace shardwise::exec
