#include "simulator/traces/proto_message.h"

namespace shardwise::sim {
namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kLengthDelimited = 2;

void append(std::string& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  bytes += static_cast<char>(value);
}

void append_tag(std::string& bytes, std::uint32_t field, std::uint32_t type) {
  append(bytes, std::uint64_t{field} << 3 | type);
}

}  // namespace

void ProtoMessage::number(std::uint32_t field, std::uint64_t value) {
  append_tag(bytes_, field, kVarint);
  append(bytes_, value);
}

void ProtoMessage::text(std::uint32_t field, std::string_view value) {
  append_tag(bytes_, field, kLengthDelimited);
  append(bytes_, value.size());
  bytes_ += value;
}

void ProtoMessage::packed(std::uint32_t field, const std::vector<std::uint64_t>& values) {
  if (values.empty()) return;
  std::string all;
  for (const std::uint64_t each : values) append(all, each);
  text(field, all);
}

std::string ProtoMessage::delimited() const {
  std::string made;
  append(made, bytes_.size());
  return made + bytes_;
}

}  // namespace shardwise::sim
