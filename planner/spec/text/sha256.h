#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardwise {

/// The SHA-256 of `text`. Source: FIPS 180-4, section 6.2.
std::array<std::uint8_t, 32> sha256_bytes(std::string_view text);

/// The SHA-256 of `text` in 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace shardwise
