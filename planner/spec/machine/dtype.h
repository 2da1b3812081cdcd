#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "planner/spec/text/enum_names.h"

namespace shardwise {

/// Element types of tensors and of matrix units, spelt as in JSON. Sub-byte types are stored
/// packed.
enum class DType : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int8, fp6, fp4 };

inline constexpr std::array<DType, 9> kAllDTypes = {DType::fp64, DType::fp32, DType::tf32,
                                                    DType::bf16, DType::fp16, DType::fp8,
                                                    DType::int8, DType::fp6,  DType::fp4};

/// Bits one element takes in memory. tf32 is a mode of the matrix unit: its data stay fp32.
constexpr int bits_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 64;
    case DType::fp32:
    case DType::tf32:
      return 32;
    case DType::bf16:
    case DType::fp16:
      return 16;
    case DType::fp8:
    case DType::int8:
      return 8;
    case DType::fp6:
      return 6;
    case DType::fp4:
      return 4;
  }
  return 0;
}

/// Bytes of one element. \pre at least one byte wide (not fp6, fp4)
constexpr int bytes_of(DType dtype) { return bits_of(dtype) / 8; }

template <>
inline constexpr std::array<std::string_view, 9> kNamesOf<DType> = {
    "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4"};

constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (name_of(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace shardwise
