#include "executor/comm/sockets/door.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardwise::exec {
namespace {

/// Seconds that a connection has for each of its messages.
constexpr double kMessage = 10;
/// A Challenge fits into the buffer of any socket: no time is needed to send it.
constexpr double kNoTime = 0;

/// Of an end that knows the key; nothing where it does not, or says nothing.
std::optional<ChallengeBytes> challenge_of(const FileDescriptor& line, const HelloBytes& hello,
                                           const Digest& key, Deadline until) {
  ChallengeBytes challenge{};
  if (!send_all(line, hello, until) || !receive_all(line, challenge, until)) return std::nullopt;
  return proves_key(challenge, hello, key) ? std::optional(challenge) : std::nullopt;
}

}  // namespace

/// Answers a Hello that is meant for this process; closes other connections.
void Door::challenge(Arrivals::Arrival arrival) {
  if (rules_.same_user && !is_of_this_user(arrival.line)) return;
  const std::optional<Hello> hello = parse_hello(arrival.said);
  if (!hello || hello->purpose != rules_.purpose || hello->size != rules_.size) return;
  if (hello->to != rules_.rank || hello->from == rules_.rank) return;
  if (hello->from < 0 || hello->from >= rules_.size) return;
  const ChallengeBytes bytes = challenge_to(arrival.said, rules_.key, draw_digest());
  if (!send_all(arrival.line, bytes, in_seconds(kNoTime))) return;
  std::vector<std::byte> before = std::move(arrival.said);
  before.insert(before.end(), bytes.begin(), bytes.end());
  ++turned_away_;  // until it has proved the key
  arrivals_.add(std::move(arrival.line), 1, kProofBytes + rules_.said_bytes, kMessage,
                std::move(before));
}

std::vector<Door::Guest> Door::admit(std::span<const FileDescriptor> listening, Deadline until) {
  std::vector<Guest> guests;
  for (Arrivals::Arrival& each : arrivals_.hear(listening, kHelloBytes, kMessage, until)) {
    if (each.before.empty()) {
      challenge(std::move(each));
      continue;
    }
    const std::span<const std::byte> before = each.before;
    const std::span<const std::byte> hello = before.first(kHelloBytes);
    if (!proof_holds(each.said, hello, before.subspan(kHelloBytes), rules_.key)) continue;
    --turned_away_;
    each.said.erase(each.said.begin(), each.said.begin() + kProofBytes);
    guests.push_back({std::move(each.line), *parse_hello(hello), std::move(each.said)});
  }
  return guests;
}

bool greet(const FileDescriptor& line, const Hello& hello, const Digest& key, Deadline until) {
  const HelloBytes sent = bytes_of(hello);
  const auto challenge = challenge_of(line, sent, key, until);
  return challenge && send_all(line, proof_and({}, sent, *challenge, key), until);
}

bool answers(const FileDescriptor& line, const Hello& hello, const Digest& key, Deadline until) {
  return challenge_of(line, bytes_of(hello), key, until).has_value();
}

}  // namespace shardwise::exec
