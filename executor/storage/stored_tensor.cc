#include "executor/storage/stored_tensor.h"

namespace shardwise::exec {

std::int64_t bytes_of(StoredType type) {
  switch (type) {
    case StoredType::boolean:
    case StoredType::u8:
    case StoredType::i8:
    case StoredType::f8_e5m2:
    case StoredType::f8_e4m3:
      return 1;
    case StoredType::i16:
    case StoredType::u16:
    case StoredType::f16:
    case StoredType::bf16:
      return 2;
    case StoredType::i32:
    case StoredType::u32:
    case StoredType::f32:
      return 4;
    case StoredType::f64:
    case StoredType::i64:
    case StoredType::u64:
      return 8;
  }
  return 0;
}

const std::vector<std::string_view>& stored_type_names() {
  static const std::vector<std::string_view> kNames = {"BOOL", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
                                                       "I16",  "U16", "F16", "BF16",    "I32",
                                                       "U32",  "F32", "F64", "I64",     "U64"};
  return kNames;
}

std::string_view name_of(StoredType type) {
  return stored_type_names()[static_cast<std::size_t>(type)];
}

std::int64_t TensorSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t length : shape) product *= length;
  return product;
}

}  // namespace shardwise::exec
