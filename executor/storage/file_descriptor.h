#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace shardwise::exec {

/// An open file, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Closes it now. \returns 0, or the error
  int close();

  /// Fills `to` from byte `at` of the file. \throws IoError with `name` when it cannot
  void read(std::int64_t at, std::span<std::byte> to, const std::string& name) const;

 private:
  int number_ = -1;
};

}  // namespace shardwise::exec
