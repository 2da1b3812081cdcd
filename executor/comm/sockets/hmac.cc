#include "executor/comm/sockets/hmac.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>

#include "planner/spec/text/error.h"
#include "planner/spec/text/sha256.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kHashBlock = 64;  // bytes of SHA-256's input block

std::string hashed(std::string_view text) {
  const auto bytes = sha256_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::string padded_with(std::string key, unsigned char pad) {
  for (char& each : key) each = static_cast<char>(static_cast<unsigned char>(each) ^ pad);
  return key;
}

}  // namespace

Digest hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > kHashBlock ? hashed(key) : std::string(key);
  block.resize(kHashBlock, '\0');
  const std::string inner = hashed(padded_with(block, 0x36).append(message));
  const auto outer = sha256_bytes(padded_with(block, 0x5c).append(inner));
  Digest digest{};
  std::ranges::copy(std::as_bytes(std::span(outer)), digest.begin());
  return digest;
}

bool same_digest(const Digest& a, const Digest& b) {
  std::uint8_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= std::to_integer<std::uint8_t>(a[i] ^ b[i]);
  }
  return different == 0;
}

std::string_view as_key(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Digest draw_digest() {
  Digest drawn{};
  if (::getrandom(drawn.data(), drawn.size(), 0) != static_cast<ssize_t>(drawn.size())) {
    throw IoError("the system has no random bytes");
  }
  return drawn;
}

}  // namespace shardwise::exec
