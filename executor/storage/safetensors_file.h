#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "executor/storage/file_descriptor.h"
#include "executor/storage/safetensors_header.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// A safetensors file, open for reading.
class SafetensorsFile {
 public:
  /// \returns what is wrong with it: not there, not a regular file, truncated, a header that does
  ///          not fit its data
  static Result<SafetensorsFile> open(const std::filesystem::path& path,
                                      SymbolicLinks links = SymbolicLinks::followed);

  const std::string& name() const { return name_; }
  /// Bytes of the whole file, header included.
  std::int64_t bytes() const { return bytes_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const StoredMetadata& metadata() const { return header_.metadata; }
  /// nullptr when the file has no such tensor.
  const StoredTensor* find(const std::string& tensor) const;

  /// Where a tensor's bytes begin in the file.
  std::int64_t begin_of(const StoredTensor& tensor) const { return data_begin_ + tensor.begin; }

  /// Fills `to` with a tensor's bytes, from its byte `at` on. \pre they are the tensor's
  /// \throws IoError when the file cannot be read
  void read(const StoredTensor& tensor, std::int64_t at, std::span<std::byte> to) const;
  /// Fills `to` from byte `at` of the file on. \pre they are the file's \throws IoError
  void read_file(std::int64_t at, std::span<std::byte> to) const { file_.read(at, to, name_); }

 private:
  SafetensorsFile(std::string name, FileDescriptor file, std::int64_t bytes,
                  SafetensorsHeader header, std::int64_t data_begin);

  std::string name_;
  FileDescriptor file_;
  std::int64_t bytes_ = 0;
  SafetensorsHeader header_;
  std::int64_t data_begin_ = 0;
};

}  // namespace shardwise::exec
