#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shardwise::exec {

/// A process of a job as the others know it. Sent as it lies in memory.
struct Member {
  std::array<char, 192> machine{};  // the same where kernel and network are the same
  std::array<char, 64> host{};      // its name, for people
  std::array<std::array<char, 64>, 4> addresses{};  // where it listens, best first
  std::array<std::uint64_t, 2> name{};              // drawn: that of its local socket
  std::int32_t port = 0;                            // on all of its addresses; 0: none
  std::int32_t process = 0;  // its number, for people: nothing is done to a process for it

  bool same_machine(const Member& other) const { return machine == other.machine; }
};
inline constexpr std::size_t kMemberBytes = 192 + 64 + 4 * 64 + 16 + 2 * 4;
static_assert(sizeof(Member) == kMemberBytes, "sent without padding");

std::span<const std::byte> bytes_of(const Member& member);
/// Member that another process claims to be: every text is ended, and of characters that print, and
/// the port is one. \pre bytes.size() == kMemberBytes
Member parse_member(std::span<const std::byte> bytes);

/// Copies a text into a field of a Member, cut so that it is ended.
template <std::size_t kSize>
void copy_text(const std::string& text, std::array<char, kSize>& to) {
  to = {};
  text.copy(to.data(), kSize - 1);
}

}  // namespace shardwise::exec
