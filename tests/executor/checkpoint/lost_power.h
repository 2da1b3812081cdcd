#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/executor/checkpoint/file_log.h"

namespace shardwise::exec::test {

/// Fate in a power loss of an operation that no fsync of its file or folder followed.
enum class Fate : std::uint8_t {
  lost,
  done,
  half,   // of a write the first half, of anything else nothing
  zeros,  // of a write the length without the bytes, of anything else nothing
};

/// The files and folders that a disk has.
struct Disk {
  std::map<int, std::map<std::string, int>> folders;
  std::map<int, std::string> files;

  /// Writes what a folder has to another one, which is empty.
  void write(const std::filesystem::path& to, int folder = kRoot) const;
};

/// Operations that the disk may have lost, by place.
std::vector<std::size_t> not_kept(std::span<const FileOperation> done);

/// Disk when the power is lost after these operations. Lost ones are lost whatever
/// came after them: stricter than file systems that keep an order of names, as POSIX has none.
Disk disk_after(std::span<const FileOperation> done, const std::map<std::size_t, Fate>& fates);

}  // namespace shardwise::exec::test
