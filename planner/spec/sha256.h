#pragma once

#include <string>
#include <string_view>

namespace shardwise {

/// The SHA-256 of `text` in 64 lower-case hexadecimal digits. Source: FIPS 180-4, section 6.2.
std::string sha256(std::string_view text);

}  // namespace shardwise
