#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::sim {

/// A message of Protocol Buffers, field by field, in their binary encoding. Numbers are written as
/// proto3 writes uint64, int32, int64, bool and enum fields; a zero is written as well.
/// Source: protobuf.dev, "Encoding": varints, length-delimited records, packed repeated fields.
class ProtoMessage {
 public:
  void number(std::uint32_t field, std::uint64_t value);
  void text(std::uint32_t field, std::string_view value);
  void message(std::uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }
  void packed(std::uint32_t field, const std::vector<std::uint64_t>& values);

  /// The message after its length, as streams of messages have it.
  std::string delimited() const;

 private:
  std::string bytes_;
};

}  // namespace shardwise::sim
