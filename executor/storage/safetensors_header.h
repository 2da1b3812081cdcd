#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/storage/stored_tensor.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Layout of a safetensors file: eight bytes with the length of a JSON text, little endian, that
/// text, padded with spaces to a multiple of eight, and the tensors' bytes without gap or overlap.
/// Source: github.com/huggingface/safetensors, README.md, Format; safetensors/src/tensor.rs.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  StoredMetadata metadata;
};

inline constexpr std::int64_t kSafetensorsLengthBytes = 8;
inline constexpr std::int64_t kLongestSafetensorsHeader = 100'000'000;

/// Reads the JSON text of a header. Refused, each with the tensor's name: an unknown type or key, a
/// shape that is none or whose bytes are not those of its offsets, a name twice, offsets that leave
/// a gap, overlap, or are not those of the file's data.
/// \param data_bytes  that follow the header in the file
/// \param file        its name, for messages
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                                   const std::string& file);

/// Length and text of the header of a file with these tensors, one after the other.
/// \pre names differ, and none is "__metadata__"
std::string safetensors_header(const std::vector<TensorSpec>& tensors,
                               const StoredMetadata& metadata);

}  // namespace shardwise::exec
