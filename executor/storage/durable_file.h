#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// A file that appears whole and stays, or not at all: written under another name beside `path`,
/// synchronised with the disk, renamed, and the folder synchronised. What was at `path` is there
/// until then. All functions throw IoError with the path and the reason.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& path);
  /// Leaves nothing behind unless finish() has returned.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void finish();

  /// Of what was written so far.
  std::int64_t bytes() const { return bytes_; }
  std::uint32_t crc32() const { return crc32_; }

 private:
  void flush();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::filesystem::path beside_;
  FileDescriptor file_;
  std::vector<std::byte> waiting_;
  std::int64_t bytes_ = 0;
  std::uint32_t crc32_ = 0;
};

/// Has the disk keep the names in a folder. \throws IoError
void sync_folder(const std::filesystem::path& folder);

/// Makes a folder and those above it that are missing, and has the disk keep their names.
/// \throws IoError
void make_folder(const std::filesystem::path& folder);

/// The CRC-32 of what has `crc32` and of `bytes` after it; of nothing, 0. Finds every change of up
/// to 32 neighbouring bits. Source: RFC 1952, section 8.
std::uint32_t crc32_of(std::uint32_t crc32, std::span<const std::byte> bytes);

}  // namespace shardwise::exec
