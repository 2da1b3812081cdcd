#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/files/atomic_file.h"

namespace shardwise::exec {

/// A file that is written piece by piece and appears whole, or not at all (AtomicFile), with its
/// length and checksum. All functions throw IoError with the path and the reason.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& path);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();

  /// Bytes written so far.
  std::int64_t bytes() const { return bytes_; }
  std::uint32_t crc32() const { return crc32_; }

 private:
  void flush();

  AtomicFile file_;
  std::vector<std::byte> waiting_;
  std::int64_t bytes_ = 0;
  std::uint32_t crc32_ = 0;
};

/// Makes a folder and those above it that are missing, and has the disk keep their names.
/// \throws IoError
void make_folder(const std::filesystem::path& folder);

/// The CRC-32 of what has `crc32` and of `bytes` after it; of nothing, 0. Finds every change of up
/// to 32 neighbouring bits. Source: RFC 1952, section 8.
std::uint32_t crc32_of(std::uint32_t crc32, std::span<const std::byte> bytes);

}  // namespace shardwise::exec
