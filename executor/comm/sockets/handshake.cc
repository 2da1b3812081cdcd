#include "executor/comm/sockets/handshake.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace shardwise::exec {
namespace {

/// Ended by zeros up to its length.
constexpr std::string_view kMagic = "shardwise/2";
constexpr std::string_view kAccepts = "shardwise accepting end";
constexpr std::string_view kConnects = "shardwise connecting end";

using Bytes = std::span<const std::byte>;

/// Writes parts one after another.
class Writer {
 public:
  explicit Writer(std::span<std::byte> to) : to_(to) {
    std::ranges::fill(to_, std::byte{0});
    std::ranges::copy(std::as_bytes(std::span(kMagic)), to_.begin());
    to_ = to_.subspan(kMagicBytes);
  }
  template <class Value>
  void put(const Value& value) {
    std::memcpy(to_.data(), &value, sizeof(value));
    to_ = to_.subspan(sizeof(value));
  }

 private:
  std::span<std::byte> to_;
};

/// Reads them again. \pre bytes for all of them
class Reader {
 public:
  explicit Reader(Bytes from) : from_(from.subspan(kMagicBytes)) {}
  template <class Value>
  Value get() {
    Value value{};
    std::memcpy(&value, from_.data(), sizeof(value));
    from_ = from_.subspan(sizeof(value));
    return value;
  }

 private:
  Bytes from_;
};

bool has_magic(Bytes bytes) {
  std::array<std::byte, kMagicBytes> expected{};
  std::ranges::copy(std::as_bytes(std::span(kMagic)), expected.begin());
  return bytes.size() >= kMagicBytes && std::ranges::equal(bytes.first(kMagicBytes), expected);
}

/// Parts have fixed lengths, or are the last, so no two lists of them give one message.
Digest mac_of(const Digest& key, std::string_view word, std::initializer_list<Bytes> parts) {
  std::string message(word);
  for (const Bytes part : parts) {
    message.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return hmac_sha256(as_key(key), message);
}

Digest digest_at(Bytes bytes, std::size_t at) {
  Digest digest{};
  std::memcpy(digest.data(), bytes.subspan(at).data(), digest.size());
  return digest;
}

}  // namespace

HelloBytes bytes_of(const Hello& hello) {
  HelloBytes bytes{};
  Writer writer(bytes);
  writer.put(static_cast<std::uint32_t>(hello.purpose));
  writer.put(hello.from);
  writer.put(hello.to);
  writer.put(hello.size);
  writer.put(hello.channel);
  writer.put(hello.group);
  writer.put(hello.nonce);
  return bytes;
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != kHelloBytes || !has_magic(bytes)) return std::nullopt;
  Reader reader(bytes);
  Hello hello;
  const auto purpose = reader.get<std::uint32_t>();
  if (purpose != 1 && purpose != 2) return std::nullopt;
  hello.purpose = static_cast<Purpose>(purpose);
  hello.from = reader.get<std::int32_t>();
  hello.to = reader.get<std::int32_t>();
  hello.size = reader.get<std::int32_t>();
  hello.channel = reader.get<std::int32_t>();
  hello.group = reader.get<std::uint64_t>();
  hello.nonce = reader.get<Digest>();
  return hello;
}

ChallengeBytes challenge_to(std::span<const std::byte> hello, const Digest& key,
                            const Digest& nonce) {
  ChallengeBytes bytes{};
  Writer writer(bytes);
  writer.put(nonce);
  writer.put(mac_of(key, kAccepts, {hello, nonce}));
  return bytes;
}

bool proves_key(std::span<const std::byte> challenge, std::span<const std::byte> hello,
                const Digest& key) {
  if (challenge.size() != kChallengeBytes || !has_magic(challenge)) return false;
  const Digest nonce = digest_at(challenge, kMagicBytes);
  const Digest mac = digest_at(challenge, kMagicBytes + sizeof(Digest));
  return same_digest(mac, mac_of(key, kAccepts, {hello, nonce}));
}

std::vector<std::byte> proof_and(std::span<const std::byte> said, std::span<const std::byte> hello,
                                 std::span<const std::byte> challenge, const Digest& key) {
  const Digest mac = mac_of(key, kConnects, {hello, challenge, said});
  std::vector<std::byte> bytes(kProofBytes + said.size());
  std::ranges::copy(mac, bytes.begin());
  std::ranges::copy(said, bytes.begin() + kProofBytes);
  return bytes;
}

bool proof_holds(std::span<const std::byte> proof_and_said, std::span<const std::byte> hello,
                 std::span<const std::byte> challenge, const Digest& key) {
  if (proof_and_said.size() < kProofBytes) return false;
  const Bytes said = proof_and_said.subspan(kProofBytes);
  return same_digest(digest_at(proof_and_said, 0),
                     mac_of(key, kConnects, {hello, challenge, said}));
}

}  // namespace shardwise::exec
