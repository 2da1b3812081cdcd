#include "executor/storage/safetensors_writer.h"

#include <fmt/format.h>

#include "executor/storage/safetensors_header.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<TensorSpec>& tensors,
                                     const StoredMetadata& metadata)
    : file_(path) {
  for (const TensorSpec& tensor : tensors) left_ += tensor.bytes();
  file_.write(safetensors_header(tensors, metadata));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  left_ -= std::ssize(bytes);
  SHARDWISE_CHECK(left_ >= 0, fmt::format("{} bytes more than the tensors have", -left_));
  file_.write(bytes);
}

void SafetensorsWriter::finish() {
  SHARDWISE_CHECK(left_ == 0, fmt::format("{} bytes of the tensors are missing", left_));
  file_.finish();
}

}  // namespace shardwise::exec
