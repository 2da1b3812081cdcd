#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "executor/storage/durable_file.h"
#include "executor/storage/stored_tensor.h"

namespace shardwise::exec {

/// Writes one safetensors file, tensor after tensor, without holding more than a piece of it. The
/// file appears when it is whole (DurableFile). All functions throw IoError.
class SafetensorsWriter {
 public:
  /// Tensors lie in the file in this order. Readers that map files want wide types first, so that
  /// every tensor is aligned. \pre names differ
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                    const StoredMetadata& metadata = {});

  /// The next bytes of the tensors, in pieces of any size.
  void write(std::span<const std::byte> bytes);
  /// \pre every byte of every tensor was written
  void finish();

  /// Bytes of the file.
  std::int64_t bytes() const { return file_.bytes(); }
  std::uint32_t crc32() const { return file_.crc32(); }

 private:
  DurableFile file_;
  std::int64_t left_ = 0;
};

}  // namespace shardwise::exec
