#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/comm/sockets/hmac.h"

namespace shardwise::exec {

// Handshake by which both ends of a connection prove that they know the key of a job, which is
// derived from its secret and never sent:
//
//   who connects    Hello      who it is, whom it wants, a nonce
//   who accepts     Challenge  a nonce, and an HMAC over the Hello and this nonce
//   who connects    Proof      an HMAC over all of the above and what it has to say, and that
//
// The two HMACs begin with different words, so neither can be sent back as the other; both nonces
// are drawn for the connection, so nothing recorded is of use on another. All lengths are fixed.

/// Purpose of a connection.
enum class Purpose : std::uint8_t { rendezvous = 1, group = 2 };

struct Hello {
  Purpose purpose = Purpose::rendezvous;
  std::int32_t from = 0;     // the rank that connects
  std::int32_t to = 0;       // the rank that it wants
  std::int32_t size = 0;     // ranks of the job
  std::int32_t channel = 0;  // Channel::number() of the group
  std::uint64_t group = 0;   // a hash of the group's ranks
  Digest nonce{};
};

constexpr std::size_t kMagicBytes = 16;
constexpr std::size_t kHelloBytes = kMagicBytes + 5 * sizeof(std::int32_t) + 8 + sizeof(Digest);
constexpr std::size_t kChallengeBytes = kMagicBytes + 2 * sizeof(Digest);
constexpr std::size_t kProofBytes = sizeof(Digest);

using HelloBytes = std::array<std::byte, kHelloBytes>;
using ChallengeBytes = std::array<std::byte, kChallengeBytes>;

HelloBytes bytes_of(const Hello& hello);
/// Nothing when this is no Hello of this protocol. \pre bytes.size() == kHelloBytes
std::optional<Hello> parse_hello(std::span<const std::byte> bytes);

/// Answer of the accepting end to a Hello. \param nonce drawn for this connection
ChallengeBytes challenge_to(std::span<const std::byte> hello, const Digest& key,
                            const Digest& nonce);
/// Whether a Challenge was made by an end that knows the key, for this Hello.
bool proves_key(std::span<const std::byte> challenge, std::span<const std::byte> hello,
                const Digest& key);

/// The Proof of the end that connected, followed by what it has to say.
std::vector<std::byte> proof_and(std::span<const std::byte> said, std::span<const std::byte> hello,
                                 std::span<const std::byte> challenge, const Digest& key);
/// Whether a Proof and what follows it are of an end that knows the key.
bool proof_holds(std::span<const std::byte> proof_and_said, std::span<const std::byte> hello,
                 std::span<const std::byte> challenge, const Digest& key);

}  // namespace shardwise::exec
