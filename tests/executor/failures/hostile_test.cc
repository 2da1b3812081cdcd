// What a process on the ports of a job can do to rank 0 of a run: without its secret nothing, and
// with it no more than end the run (D1). Own client of the protocol, on this machine alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/notice.h"
#include "executor/comm/sockets/handshake.h"
#include "executor/comm/sockets/member.h"
#include "executor/comm/sockets/rendezvous.h"
#include "executor/comm/sockets/socket.h"
#include "planner/spec/text/utf8.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::bytes_of_file;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr double kPatience = 60;
constexpr const char* kSecret = "the secret of the hostile tests";
constexpr int kProblems = 103;  // groups of a run
constexpr int kControl = 105;

Deadline soon() { return in_seconds(kPatience); }

/// FNV-1a over the ranks 0 and 1, as groups are named.
std::uint64_t both_ranks() {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t rank : {0, 1}) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (static_cast<std::uint64_t>(rank) >> shift & 0xFFU)) * 1099511628211U;
    }
  }
  return hash;
}

/// Rank 0 of a run of two ranks, or as many, and a process that is not one of ours.
class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    if (own_addresses().empty()) GTEST_SKIP() << "this machine has no network";
    address_ = own_addresses().front();
    at_ = {address_, 0, 1, "", kSecret, false};
  }

  RunningProgram start(int rank, int ranks, const std::string& timeout_s,
                       const std::string& limit = "ulimit -c 0") {
    if (at_.first_port == 0) at_.first_port = port_of(*listen_tcp(address_, 0));
    at_.job = "torchrun hostile 0 " + std::to_string(at_.first_port);
    const std::string name = "rank" + std::to_string(rank);
    return RunningProgram(
        "env",
        {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
         "MASTER_ADDR=" + address_, "MASTER_PORT=" + std::to_string(at_.first_port - 1),
         "TORCHELASTIC_RUN_ID=hostile", std::string("SHARDWISE_SECRET=") + kSecret, "bash", "-c",
         limit + " && exec \"$@\"", "run", built("shardwise-run"),
         scratch_.write(tiny_plan("shardwise", 3, ranks, 1)), "--data", "docs/memory.md", "--steps",
         "2", "--timeout", timeout_s},
        scratch_.path(name + ".out"), scratch_.path(name + ".err"));
  }
  std::string said_by(int rank) const {
    return bytes_of_file(scratch_.path("rank" + std::to_string(rank) + ".err"));
  }

  /// Waits until the rank listens there. \returns the connection, closed where it never does
  FileDescriptor connected(int port) const {
    const Deadline late = soon();
    while (left_ms(late) > 0) {
      std::optional<FileDescriptor> line = connect_tcp(address_, port, soon());
      if (line) return *std::move(line);
      std::this_thread::sleep_for(milliseconds(1));
    }
    ADD_FAILURE() << "nobody listens at port " << port;
    return {};
  }

  /// Proves `key` with what it says. \returns the connection, closed where the other end was
  FileDescriptor enter(int port, Hello hello, const Digest& key,
                       std::span<const std::byte> said) const {
    FileDescriptor line = connected(port);
    hello.nonce = draw_digest();
    const HelloBytes sent = bytes_of(hello);
    ChallengeBytes challenge{};
    if (!send_all(line, sent, soon()) || !receive_all(line, challenge, soon())) return {};
    if (!send_all(line, proof_and(said, sent, challenge, key), soon())) return {};
    return line;
  }

  /// Joins as the last rank of the job, which says this of itself.
  FileDescriptor join(Member member, int ranks = 2) {
    Hello hello;
    hello.from = ranks - 1;
    hello.size = ranks;
    FileDescriptor line = enter(at_.first_port, hello, at_.key(ranks), bytes_of(member));
    std::vector<std::byte> host(kMemberBytes);
    EXPECT_TRUE(receive_all(line, host, soon()));
    host_ = parse_member(host);
    return line;
  }
  /// Waits until all have met, of two ranks. \returns the key of the job's groups
  Digest meet_all(const FileDescriptor& line) const {
    std::int32_t count = -1;
    while (count < 0) {
      if (!receive_all(line, std::as_writable_bytes(std::span(&count, 1)), soon())) return {};
    }
    std::vector<std::byte> members(static_cast<std::size_t>(count) * kMemberBytes);
    Digest session{};
    EXPECT_TRUE(receive_all(line, members, soon()) && receive_all(line, session, soon()));
    return hmac_sha256(kSecret, "shardwise groups" + std::string(as_key(session)));
  }
  FileDescriptor enter_group(const Digest& key, int number) const {
    Hello hello;
    hello.purpose = Purpose::group;
    hello.from = 1;
    hello.size = 2;
    hello.channel = number;
    hello.group = both_ranks();
    return enter(host_.port, hello, key, {});
  }

  std::string address_;
  Rendezvous at_;
  Member host_;
  Scratch scratch_;
};

// Rank 0 once had the process killed whose number a message said.
TEST_F(Hostile, RankHasNoProcessKilledThatItNames) {
  const pid_t victim = ::fork();
  if (victim == 0) {
    for (;;) ::pause();
  }
  RunningProgram run = start(0, 2, "1");
  Member member;
  member.process = victim;
  FileDescriptor line = join(member);
  member.machine = host_.machine;
  line.close();
  EXPECT_TRUE(run.wait(kLongWait));  // rank 1 is gone
  RunningProgram again = start(0, 2, "1");
  line = join(member);
  const Digest key = meet_all(line);
  const FileDescriptor control = enter_group(key, kControl);
  EXPECT_TRUE(again.wait(kLongWait));  // rank 1 hangs
  EXPECT_EQ(again.exit_code(), 3);
  EXPECT_THAT(said_by(0), HasSubstr("rank 1\n  its process " + std::to_string(victim)));
  EXPECT_EQ(::waitpid(victim, nullptr, WNOHANG), 0) << "the victim was killed";
  ::kill(victim, SIGKILL);
  ::waitpid(victim, nullptr, 0);
}

// Eight bytes once made rank 0 take 2.8 GiB.
TEST_F(Hostile, RankHasNoMemoryTakenByALength) {
  RunningProgram run = start(0, 2, "60");
  const FileDescriptor line = join({});
  const Digest key = meet_all(line);
  const FileDescriptor control = enter_group(key, kControl);
  const FileDescriptor problems = enter_group(key, kProblems);
  const std::uint64_t length = 1'000'000'000;
  EXPECT_TRUE(send_all(problems, std::as_bytes(std::span(&length, 1)), soon()));
  std::vector<std::byte> told(1);
  EXPECT_TRUE(receive_all(control, told, soon()));  // that all end
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_EQ(said_by(0),
            "shardwise-run: rank 0: rank 1 of a group has a text of 1000000000 bytes, at most "
            "67108864 are sent\n");
}

// Of a notice that says it is longer than one can be rank 0 once kept all that came.
TEST_F(Hostile, RankIsGoneWhenItSendsANoticeWithoutAnEnd) {
  RunningProgram run = start(0, 2, "60");
  const FileDescriptor line = join({});
  const FileDescriptor control = enter_group(meet_all(line), kControl);
  std::vector<std::byte> stream = bytes_of(Notice{Notice::Word::does, {}, {}});
  const std::uint32_t length = 2'000'000'000;
  std::memcpy(&stream[4], &length, sizeof(length));
  stream.resize(std::size_t{64} << 20);
  EXPECT_FALSE(send_all(control, stream, soon())) << "all of it was taken";
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_THAT(said_by(0), HasSubstr("rank 1 is gone: its process "));
}

// Defect N4: 12,000 escape characters of another rank once reached the terminal of rank 0.
TEST_F(Hostile, RankPrintsNothingThatSteersItsTerminal) {
  RunningProgram run = start(0, 2, "60");
  const FileDescriptor line = join({});
  const FileDescriptor control = enter_group(meet_all(line), kControl);
  std::string text = "rank 1 fails\nroot# all is well\r";
  while (text.size() < 60'000) text += "\x1b]0;title\x07\x1b]52;c;Y2xpcGJvYXJk\x07\x9b";
  EXPECT_TRUE(send_all(control, bytes_of(Notice{Notice::Word::failed, Failure::Kind::broken, text}),
                       soon()));
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 3);
  const std::string said = said_by(0);
  EXPECT_THAT(said, testing::StartsWith("shardwise-run: rank 1 fails\n  root# all is well\\u000d"
                                        "\\u001b]0;title\\u0007"));
  EXPECT_EQ(first_not_utf8(said), said.size());
  EXPECT_EQ(said.find("\xc2"), std::string::npos);  // none of the control characters from U+0080 on
  for (const char c : said) {
    const auto byte = static_cast<unsigned char>(c);
    ASSERT_TRUE(c == '\n' || (byte >= ' ' && byte != 0x7F)) << int{byte};
  }
}

// A host name without an end was once printed with the heap behind it.
TEST_F(Hostile, RankHasNothingPrintedBehindItsName) {
  RunningProgram run = start(0, 3, "60");
  Member member;
  member.host.fill('H');
  member.addresses.front().fill('A');
  member.process = 7;
  { const FileDescriptor line = join(member, 3); }
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_EQ(said_by(0),
            "shardwise-run: rank 2 is gone: its process 7 on " + std::string(63, 'H') + " ended\n");
}

// A stranger was once rank 1, if it came first.
TEST_F(Hostile, StrangerTakesNoRank) {
  RunningProgram run = start(0, 2, "60");
  const FileDescriptor old = connected(at_.first_port);
  std::vector<std::byte> greeting(136 + 536, std::byte{0});
  std::memcpy(greeting.data(), "shardwise rendezvous/1", 22);
  send_all(old, greeting, soon());
  Hello hello;
  hello.from = 1;
  hello.size = 2;
  const Rendezvous guess = {address_, at_.first_port, 1, at_.job, "a guess of the secret", false};
  const FileDescriptor stranger =
      enter(at_.first_port, hello, guess.key(2), std::vector<std::byte>(kMemberBytes));
  std::vector<std::byte> answer(1);
  EXPECT_FALSE(receive_all(stranger, answer, soon()));
  RunningProgram other = start(1, 2, "60");
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_TRUE(other.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 0) << said_by(0);
  EXPECT_EQ(other.exit_code(), 0) << said_by(1);
}

// Connections that say nothing once took every file descriptor, ten seconds each.
TEST_F(Hostile, StrangersLeaveFileDescriptorsToTheJob) {
  RunningProgram run = start(0, 2, "25", "ulimit -n 96");
  std::vector<FileDescriptor> strangers;
  while (strangers.size() < 400) strangers.push_back(connected(at_.first_port));
  RunningProgram other = start(1, 2, "25", "ulimit -n 96");
  EXPECT_TRUE(run.wait(kLongWait));
  EXPECT_TRUE(other.wait(kLongWait));
  EXPECT_EQ(run.exit_code(), 0) << said_by(0);
  EXPECT_EQ(other.exit_code(), 0) << said_by(1);
}

}  // namespace
}  // namespace shardwise::exec::test
