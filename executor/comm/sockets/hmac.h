#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardwise::exec {

using Digest = std::array<std::byte, 32>;

/// HMAC-SHA256. Source: RFC 2104, section 2.
Digest hmac_sha256(std::string_view key, std::string_view message);

/// Whether two digests are the same, in a time that does not depend on where they differ.
bool same_digest(const Digest& a, const Digest& b);

/// Digest as the key of another HMAC.
std::string_view as_key(const Digest& digest);

/// Random bytes that nobody can foresee. \throws IoError. Source: getrandom(2).
Digest draw_digest();

}  // namespace shardwise::exec
