// What a stranger, a recording and a process with a wrong rank can do at the door of a job (D1).
#include "executor/comm/sockets/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/sockets/door.h"
#include "executor/comm/sockets/hmac.h"
#include "executor/comm/sockets/member.h"
#include "executor/comm/sockets/socket.h"

namespace shardwise::exec {
namespace {

std::string hexadecimal(const Digest& digest) {
  std::string text;
  for (const std::byte each : digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(each >> 4)];
    text += kDigits[std::to_integer<std::size_t>(each & std::byte{15})];
  }
  return text;
}

// RFC 4231, section 4: test cases 1 to 4, 6 and 7 (5 is of a truncated output).
TEST(HmacSha256, GivesTheTestVectorsOfRfc4231) {
  const std::string count =
      "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11"
      "\x12\x13\x14\x15\x16\x17\x18\x19";
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(hexadecimal(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexadecimal(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hexadecimal(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hexadecimal(hmac_sha256(count, std::string(50, '\xcd'))),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(
      hexadecimal(hmac_sha256(long_key, "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hexadecimal(hmac_sha256(
                long_key,
                "This is a test using a larger than block-size key and a larger than block-size "
                "data. The key needs to be hashed before being used by the HMAC algorithm.")),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(SameDigest, SeesEveryBit) {
  const Digest digest = draw_digest();
  EXPECT_TRUE(same_digest(digest, digest));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    Digest other = digest;
    other[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    EXPECT_FALSE(same_digest(digest, other)) << bit;
  }
}

Digest key_of(const std::string& secret) { return hmac_sha256(secret, "job"); }

constexpr std::size_t kSaid = 5;

/// The door of rank 0 of four, and connections to it.
class AtTheDoor : public testing::Test {
 protected:
  Hello hello(int from = 1) const {
    Hello hello;
    hello.from = from;
    hello.size = 4;
    hello.nonce = draw_digest();
    return hello;
  }
  FileDescriptor connected() const {
    return *connect_tcp("127.0.0.1", port_of(listening_.front()), in_seconds(10));
  }
  static bool say(const FileDescriptor& line, std::span<const std::byte> bytes) {
    return send_all(line, bytes, in_seconds(10));
  }
  /// Has the door listen until the other end has `bytes`, or the door has closed it.
  std::optional<std::vector<std::byte>> hear(const FileDescriptor& line, std::size_t bytes) {
    std::vector<std::byte> heard(bytes);
    for (int trial = 0; trial < 100; ++trial) {
      admit();
      if (receive_all(line, heard, in_seconds(0.01))) return heard;
    }
    return std::nullopt;
  }
  void admit() {
    for (Door::Guest& each : door_.admit(listening_, in_seconds(0))) {
      guests_.push_back(std::move(each));
    }
  }
  /// Whether what is sent now is admitted. A connection that is right comes behind it, so that what
  /// is not admitted by then never is.
  bool admitted() {
    const std::size_t before = guests_.size();
    const FileDescriptor line = connected();
    const HelloBytes sent = bytes_of(hello(3));
    say(line, sent);
    const auto challenge = hear(line, kChallengeBytes);
    if (!challenge) return false;
    say(line, proof_and(std::vector<std::byte>(kSaid), sent, *challenge, key_));
    for (int trial = 0; trial < 100 && (guests_.empty() || guests_.back().hello.from != 3);
         ++trial) {
      admit();
    }
    EXPECT_EQ(guests_.back().hello.from, 3);
    guests_.pop_back();
    return guests_.size() > before;
  }

  Digest key_ = key_of("the secret");
  Door door_{{Purpose::rendezvous, 0, 4, key_, kSaid}};
  std::vector<FileDescriptor> listening_ = [] {
    std::vector<FileDescriptor> all;
    all.push_back(*listen_tcp("127.0.0.1", 0));
    return all;
  }();
  std::vector<Door::Guest> guests_;
};

TEST_F(AtTheDoor, IsAdmittedWhatProvesTheKey) {
  const FileDescriptor line = connected();
  const HelloBytes sent = bytes_of(hello());
  say(line, sent);
  const auto challenge = hear(line, kChallengeBytes);
  ASSERT_TRUE(challenge);
  EXPECT_TRUE(proves_key(*challenge, sent, key_));
  EXPECT_FALSE(proves_key(*challenge, sent, key_of("another secret")));
  const std::vector<std::byte> said(kSaid, std::byte{'s'});
  say(line, proof_and(said, sent, *challenge, key_));
  EXPECT_TRUE(admitted());
  EXPECT_EQ(guests_.front().hello.from, 1);
  EXPECT_EQ(guests_.front().said, said);
  EXPECT_EQ(door_.turned_away(), 0);
}

TEST_F(AtTheDoor, IsTurnedAwayAProofOfAnotherSecretOrOfOtherWords) {
  const std::vector<std::byte> said(kSaid, std::byte{'s'});
  for (const bool other_words : {false, true}) {
    const FileDescriptor line = connected();
    const HelloBytes sent = bytes_of(hello());
    say(line, sent);
    const auto challenge = hear(line, kChallengeBytes);
    ASSERT_TRUE(challenge);
    const Digest key = other_words ? key_ : key_of("a guess");
    std::vector<std::byte> proof = proof_and(said, sent, *challenge, key);
    if (other_words) proof.back() = std::byte{'t'};
    say(line, proof);
    EXPECT_FALSE(admitted());
  }
  EXPECT_EQ(door_.turned_away(), 2);
}

// All that a process of the job once sent, word for word.
TEST_F(AtTheDoor, IsTurnedAwayARecording) {
  const HelloBytes sent = bytes_of(hello());
  std::vector<std::byte> proof;
  {
    const FileDescriptor line = connected();
    say(line, sent);
    const auto challenge = hear(line, kChallengeBytes);
    ASSERT_TRUE(challenge);
    proof = proof_and(std::vector<std::byte>(kSaid), sent, *challenge, key_);
    say(line, proof);
    ASSERT_TRUE(admitted());
  }
  const FileDescriptor again = connected();
  say(again, sent);
  ASSERT_TRUE(hear(again, kChallengeBytes));
  say(again, proof);
  EXPECT_FALSE(admitted());
}

// The challenge holds an HMAC that the door made, of this connection or of another one.
TEST_F(AtTheDoor, IsTurnedAwayWhatItSaidItself) {
  const FileDescriptor line = connected();
  const FileDescriptor other = connected();
  const HelloBytes sent = bytes_of(hello());
  for (const FileDescriptor* each : {&line, &other}) say(*each, sent);
  const auto challenge = hear(line, kChallengeBytes);
  const auto others = hear(other, kChallengeBytes);
  ASSERT_TRUE(challenge && others);
  for (const auto& [to, from] : {std::pair(&line, &*challenge), std::pair(&other, &*challenge)}) {
    std::vector<std::byte> proof(from->end() - sizeof(Digest), from->end());
    proof.resize(kProofBytes + kSaid);
    say(*to, proof);
  }
  EXPECT_FALSE(admitted());
}

// Whatever the secret.
TEST_F(AtTheDoor, IsNotAnsweredARankOrPurposeThatIsNotOfTheJob) {
  std::vector<Hello> all(8, hello());
  all[0].from = 0;  // itself
  all[1].from = -1;
  all[2].from = 4;
  all[3].from = INT32_MIN;
  all[4].to = 1;
  all[5].size = 5;
  all[6].size = INT32_MAX;
  all[7].purpose = Purpose::group;
  for (const Hello& each : all) {
    const FileDescriptor line = connected();
    say(line, bytes_of(each));
    EXPECT_FALSE(admitted());
    EXPECT_FALSE(hear(line, 1));
  }
  HelloBytes old = bytes_of(hello());
  std::memcpy(old.data(), "shardwise rendezvous/1", 16);
  const FileDescriptor line = connected();
  say(line, old);
  EXPECT_FALSE(admitted());
}

// Truncated, a byte at a time, without an end, and none at all: each beside a process of the job.
TEST_F(AtTheDoor, KeepsNobodyWaitingForStrangers) {
  std::vector<FileDescriptor> lines;
  const HelloBytes sent = bytes_of(hello());
  for (std::size_t bytes = 0; bytes < kHelloBytes; bytes += 9) {
    lines.push_back(connected());
    say(lines.back(), std::span(sent).first(bytes));
    admit();
    if (bytes % 2 == 0) lines.back().close();
  }
  std::mt19937 random(3);
  std::vector<std::byte> garbage(1 << 16);
  for (std::byte& each : garbage) each = static_cast<std::byte>(random());
  lines.push_back(connected());
  send_all(lines.back(), garbage, in_seconds(0));
  lines.push_back(connected());
  say(lines.back(), sent);
  ASSERT_TRUE(hear(lines.back(), kChallengeBytes));
  say(lines.back(), std::span(garbage).first(kProofBytes + kSaid - 1));
  EXPECT_FALSE(admitted());
  EXPECT_TRUE(guests_.empty());
}

/// A connection whose other end the kernel says is user 65534's. Only root can make one.
std::optional<FileDescriptor> connected_as_another_user(const std::string& name) {
  constexpr auto kSame = static_cast<uid_t>(-1);
  // The system call changes this thread alone; the library's function, the whole process.
  if (::syscall(SYS_setresuid, kSame, uid_t{65534}, kSame) != 0) return std::nullopt;
  std::optional<FileDescriptor> line = connect_local(name);
  EXPECT_EQ(::syscall(SYS_setresuid, kSame, uid_t{0}, kSame), 0);
  return line;
}

// Processes of one host meet at a local socket: another user's is not answered, though its Hello is
// well-formed and it knows the key.
TEST_F(AtTheDoor, OfOneHostIsClosedToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string name = "shardwise door test " + std::to_string(::getpid());
  std::vector<FileDescriptor> listening;
  listening.push_back(*listen_local(name));
  Door door({Purpose::rendezvous, 0, 4, key_, 0, true});
  const auto answered = [&](const FileDescriptor& line) {
    say(line, bytes_of(hello()));
    std::vector<std::byte> challenge(kChallengeBytes);
    for (int trial = 0; trial < 5; ++trial) {
      door.admit(listening, in_seconds(0));
      if (receive_all(line, challenge, in_seconds(0.01))) return true;
    }
    return false;
  };
  const std::optional<FileDescriptor> other = connected_as_another_user(name);
  if (!other) GTEST_SKIP() << "this root cannot become another user";
  EXPECT_FALSE(answered(*other));
  EXPECT_EQ(door.turned_away(), 0);
  EXPECT_TRUE(answered(*connect_local(name)));
}

// Both ends at once, as processes are.
TEST_F(AtTheDoor, GreetsOnlyADoorThatKnowsTheKeyToo) {
  Door groups({Purpose::group, 0, 4, key_, 0});
  Hello wanted = hello();
  wanted.purpose = Purpose::group;
  bool proved = false;
  bool deceived = true;
  {
    const std::jthread guest([&] {
      proved = greet(connected(), wanted, key_, in_seconds(10));
      deceived = greet(connected(), wanted, key_of("another secret"), in_seconds(10));
    });
    std::size_t admitted = 0;
    for (int trial = 0; trial < 100 && groups.turned_away() < 1; ++trial) {
      admitted += groups.admit(listening_, in_seconds(0.05)).size();
      if (admitted == 1 && groups.turned_away() == 1) break;
    }
    while (admitted < 1) admitted += groups.admit(listening_, in_seconds(0.05)).size();
    for (int trial = 0; trial < 20; ++trial) groups.admit(listening_, in_seconds(0.01));
  }
  EXPECT_TRUE(proved);
  EXPECT_FALSE(deceived);
}

// (D1c): a host name of 64 bytes without an end was once printed with the heap behind it.
TEST(ParseMember, EndsEveryTextAndKeepsWhatPrints) {
  std::vector<std::byte> bytes(kMemberBytes, std::byte{'H'});
  Member member = parse_member(bytes);
  EXPECT_EQ(std::strlen(member.machine.data()), 191);
  EXPECT_EQ(std::strlen(member.host.data()), 63);
  for (const auto& address : member.addresses) EXPECT_EQ(std::strlen(address.data()), 63);
  EXPECT_EQ(member.port, 0);  // 0x48484848 is none
  Member own;
  copy_text("a\x1b[2J\x07\xffz", own.host);
  own.port = 443;
  member = parse_member(bytes_of(own));
  EXPECT_STREQ(member.host.data(), "a?[2J??z");
  EXPECT_EQ(member.port, 443);
}

}  // namespace
}  // namespace shardwise::exec
