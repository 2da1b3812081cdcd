#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::exec {

/// Element types of a safetensors file, little endian. Source: github.com/huggingface/safetensors,
/// safetensors/src/tensor.rs, Dtype.
enum class StoredType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  f64,
  i64,
  u64
};

/// Bytes of one element.
std::int64_t bytes_of(StoredType type);
/// Spells it as files do: "F32".
std::string_view name_of(StoredType type);
/// All of them, in the order of the enumeration.
const std::vector<std::string_view>& stored_type_names();

/// A tensor as somebody wants it written.
struct TensorSpec {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;  // row-major; none: one number

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * bytes_of(type); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// A tensor of a file, and which bytes of the file's data it is.
struct StoredTensor {
  TensorSpec spec;
  std::int64_t begin = 0;

  std::int64_t end() const { return begin + spec.bytes(); }
};

/// Metadata of a file ("format": "pt").
using StoredMetadata = std::map<std::string, std::string>;

}  // namespace shardwise::exec
