// Whatever a stranger sends to the door of a job, it is not admitted, and what is read of it is
// bounded. The first byte says how the bytes are used: sent to a door over a local socket, as a
// stranger sends them; or as parts of a handshake, which are read and written again.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "executor/comm/sockets/door.h"
#include "executor/comm/sockets/handshake.h"
#include "executor/comm/sockets/member.h"
#include "executor/comm/sockets/socket.h"
#include "planner/spec/text/check.h"

namespace {

using namespace shardwise;
using namespace shardwise::exec;
using Bytes = std::span<const std::byte>;

const Digest kKey = hmac_sha256("the secret", "job");

/// Rank 0 of four, and connections to it, all in this process.
class AtTheDoor {
 public:
  AtTheDoor() { listening_.push_back(*listen_local(name())); }

  void send(Bytes bytes) {
    const std::optional<FileDescriptor> line = connect_local(name());
    SHARDWISE_CHECK(line, "a local socket takes connections");
    Bytes hello = bytes.first(std::min(bytes.size(), kHelloBytes));
    send_all(*line, hello, in_seconds(0));
    admit();
    send_all(*line, bytes.subspan(hello.size()), in_seconds(0));
    admit();
    admit();
  }

 private:
  static std::string name() { return "shardwise door fuzz " + std::to_string(::getpid()); }
  void admit() {
    const bool admitted = !door_.admit(listening_, in_seconds(0)).empty();
    SHARDWISE_CHECK(!admitted, "a stranger was admitted");
  }

  Door door_{{Purpose::rendezvous, 0, 4, kKey, kMemberBytes}};
  std::vector<FileDescriptor> listening_;
};

void check_ended(const char* text, std::size_t size) {
  SHARDWISE_CHECK(::strnlen(text, size) < size, "a text has no end");
  for (; *text != '\0'; ++text) SHARDWISE_CHECK(*text >= ' ' && *text <= '~', "does not print");
}

void read_parts(Bytes bytes) {
  const Bytes hello = bytes.first(std::min(bytes.size(), kHelloBytes));
  const std::optional<Hello> parsed = parse_hello(hello);
  if (parsed) {
    SHARDWISE_CHECK(std::ranges::equal(bytes_of(*parsed), hello), "not what was read");
  }
  const Bytes rest = bytes.subspan(hello.size());
  SHARDWISE_CHECK(!proves_key(rest, hello, kKey), "a challenge without the key");
  SHARDWISE_CHECK(!proof_holds(rest, hello, rest, kKey), "a proof without the key");
  if (bytes.size() < kMemberBytes) return;
  const Member member = parse_member(bytes.first(kMemberBytes));
  check_ended(member.machine.data(), member.machine.size());
  check_ended(member.host.data(), member.host.size());
  for (const auto& address : member.addresses) check_ended(address.data(), address.size());
  SHARDWISE_CHECK(member.port >= 0 && member.port <= 65535, "no port");
  const Member again = parse_member(bytes_of(member));
  SHARDWISE_CHECK(std::ranges::equal(bytes_of(again), bytes_of(member)), "read another way");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static AtTheDoor door;
  if (size == 0) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] % 4 == 0) {
    door.send(bytes);
  } else {
    read_parts(bytes);
  }
  return 0;
}
