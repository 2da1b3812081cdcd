#include "executor/comm/sockets/member.h"

#include <cstring>

namespace shardwise::exec {
namespace {

/// Other characters would speak to the terminal that a message is printed on.
template <std::size_t kSize>
void make_text(std::array<char, kSize>& text) {
  text.back() = '\0';
  bool over = false;
  for (char& each : text) {
    over = over || each == '\0';
    if (over) {
      each = '\0';
    } else if (each < ' ' || each > '~') {
      each = '?';
    }
  }
}

}  // namespace

std::span<const std::byte> bytes_of(const Member& member) {
  return std::as_bytes(std::span(&member, 1));
}

Member parse_member(std::span<const std::byte> bytes) {
  Member member;
  std::memcpy(&member, bytes.data(), sizeof(member));
  make_text(member.machine);
  make_text(member.host);
  for (auto& address : member.addresses) make_text(address);
  if (member.port < 0 || member.port > UINT16_MAX) member.port = 0;
  return member;
}

}  // namespace shardwise::exec
