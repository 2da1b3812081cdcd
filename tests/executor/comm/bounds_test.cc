// What comes from another process is bounded before memory is taken for it (D1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/control_group.h"
#include "executor/comm/control_line.h"
#include "executor/comm/sockets/socket.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

std::pair<FileDescriptor, FileDescriptor> connected() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<Notice> some_notices() {
  return {{Notice::Word::failed, Failure::Kind::hung, "rank 1 hangs"},
          {Notice::Word::describe, {}, {}},
          {Notice::Word::does, {}, std::string(Notice::kMostText, 'x')},
          {Notice::Word::over, {}, {}}};
}

// Defect N4: a rank sent 12,000 escape characters to the terminal of rank 0.
TEST(NoticeReader, CleansTextsOfWhatSteersATerminal) {
  const auto read = [](const std::string& text) {
    NoticeReader reader;
    std::vector<Notice> notices;
    const std::vector<std::byte> bytes = bytes_of({Notice::Word::failed, {}, text});
    EXPECT_TRUE(reader.take(bytes, notices));
    return notices.at(0).text;
  };
  EXPECT_EQ(read("rank 1 hangs\n  in layer 2\n"), "rank 1 hangs\n  in layer 2\n");
  EXPECT_EQ(read("\n\nµs"), "\n\nµs");
  EXPECT_EQ(read("\x1b]0;title\x07\r\x7f\xc2\x9b\xff"),
            "\\u001b]0;title\\u0007\\u000d\\u007f\\u009b\\xff");
  std::string escapes;
  for (int i = 0; i < 12'000; ++i) escapes += "\x1b[2J\n";
  for (const std::string& hostile :
       {escapes, std::string(60'000, '\x1b'), std::string(Notice::kMostText, '\n')}) {
    const std::string clean = read(hostile);
    EXPECT_EQ(clean.find('\x1b'), std::string::npos);
    EXPECT_LE(clean.size(), Notice::kMostText);
    EXPECT_EQ(first_not_utf8(clean), clean.size());
    EXPECT_LE(static_cast<std::size_t>(std::ranges::count(clean, '\n')), Notice::kMostLines);
  }
}

// A rank's text has lines, none of which passes for a line of another rank or of the shell.
TEST(NoticeReader, IndentsTheLinesOfOthers) {
  EXPECT_EQ(with_indented_lines("fails\n  in layer 2\n"), "fails\n  in layer 2\n");
  EXPECT_EQ(with_indented_lines("fails\nrank 0\n\n all is well\nroot# "),
            "fails\n  rank 0\n\n  all is well\n  root# ");
  EXPECT_EQ(with_indented_lines("\n"), "\n");
}

TEST(NoticeReader, ReadsWhatWasSentInAnyPieces) {
  std::vector<std::byte> stream;
  for (const Notice& each : some_notices()) {
    const std::vector<std::byte> bytes = bytes_of(each);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  }
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    NoticeReader reader;
    std::vector<Notice> notices;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t piece = std::min<std::size_t>(1 + random() % 9000, stream.size() - at);
      ASSERT_TRUE(reader.take(std::span(stream).subspan(at, piece), notices));
      at += piece;
    }
    ASSERT_EQ(notices.size(), some_notices().size());
    for (std::size_t i = 0; i < notices.size(); ++i) {
      EXPECT_EQ(notices[i].word, some_notices()[i].word);
      EXPECT_EQ(notices[i].kind, some_notices()[i].kind);
      EXPECT_EQ(notices[i].text, some_notices()[i].text);
    }
  }
}

TEST(NoticeReader, CutsATextThatIsTooLong) {
  const std::vector<std::byte> bytes =
      bytes_of({Notice::Word::does, {}, std::string(Notice::kMostText + 1000, 'x')});
  std::vector<Notice> notices;
  EXPECT_TRUE(NoticeReader().take(bytes, notices));
  EXPECT_EQ(notices.at(0).text.size(), Notice::kMostText);
}

/// A header of a notice, whatever it says.
std::vector<std::byte> header(std::uint8_t word, std::uint8_t kind, std::uint32_t length) {
  std::vector<std::byte> bytes = bytes_of({Notice::Word::over, {}, {}});
  bytes[0] = std::byte{word};
  bytes[1] = std::byte{kind};
  std::memcpy(&bytes[4], &length, sizeof(length));
  return bytes;
}

TEST(NoticeReader, RefusesWordsKindsAndLengthsThatThereAreNot) {
  for (const std::vector<std::byte>& bytes : {header(7, 0, 0), header(255, 0, 0), header(0, 3, 0),
                                              header(2, 0, 65537), header(2, 0, UINT32_MAX)}) {
    NoticeReader reader;
    std::vector<Notice> notices;
    EXPECT_FALSE(reader.take(bytes, notices));
    EXPECT_FALSE(reader.take(bytes_of({Notice::Word::over, {}, {}}), notices));
    EXPECT_TRUE(notices.empty());
  }
}

// 1,500 MiB behind such a header were once kept for ever.
TEST(ControlLine, IsClosedWhereANoticeIsTooLong) {
  auto [here, there] = connected();
  ControlLine line(std::move(here));
  std::vector<std::byte> sent = bytes_of({Notice::Word::does, {}, "first"});
  const std::vector<std::byte> bad = header(2, 0, 1 << 20);
  sent.insert(sent.end(), bad.begin(), bad.end());
  ASSERT_TRUE(send_all(there, sent, in_seconds(10)));
  const std::vector<Notice> heard = line.hear();
  ASSERT_EQ(heard.size(), 1);
  EXPECT_EQ(heard[0].text, "first");
  EXPECT_FALSE(line.is_open());
  EXPECT_FALSE(send_all(there, std::vector<std::byte>(1), in_seconds(10)));
}

/// A group of three of which this is rank 0, and whose rank 2 says that its text has `length`
/// bytes.
class LyingGroup : public ControlGroup {
 public:
  explicit LyingGroup(std::uint64_t length) : length_(length) {}
  int rank() const override { return 0; }
  int size() const override { return 3; }
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const bool lengths = calls_++ == 0;
    most_ = std::max(most_, all.size());
    std::ranges::fill(all, lengths ? std::byte{0} : std::byte{'x'});
    std::ranges::copy(mine, all.begin());
    if (lengths) std::memcpy(&all[2 * sizeof(length_)], &length_, sizeof(length_));
    if (calls_ == 5) throw Aborted("enough");
  }
  std::size_t most() const { return most_; }

  void broadcast(std::span<std::byte>, int) override {}
  void send(std::span<const std::byte>, int) override {}
  void receive(std::span<std::byte>, int) override {}

 private:
  std::uint64_t length_;
  int calls_ = 0;
  std::size_t most_ = 0;
};

// Eight bytes once made a rank take 2.8 GiB; a product of length and ranks could wrap.
TEST(AllGatherTexts, RefusesALengthThatNoRankHas) {
  for (const std::uint64_t length : {std::uint64_t{1'000'000'000}, std::uint64_t{INT64_MAX},
                                     UINT64_MAX, (UINT64_MAX / 3) + 1, (1UL << 26) + 1}) {
    LyingGroup group(length);
    try {
      all_gather_texts(group, "own");
      FAIL() << "took " << length;
    } catch (const IoError& refused) {
      EXPECT_EQ(refused.what(), "rank 2 of a group has a text of " + std::to_string(length) +
                                    " bytes, at most 67108864 are sent");
    }
  }
}

TEST(AllGatherTexts, TakesMemoryAsBytesComeAndNotAsTheyAreSaidToCome) {
  LyingGroup group(std::uint64_t{1} << 26);
  EXPECT_THROW(all_gather_texts(group, "own"), Aborted);
  EXPECT_EQ(group.most(), std::size_t{3} << 16);
}

TEST(AllGatherTexts, GivesTextsOfSeveralBlocks) {
  LyingGroup group(150'000);
  const std::vector<std::string> said = all_gather_texts(group, std::string(70'000, 'o'));
  EXPECT_EQ(said[0], std::string(70'000, 'o'));
  EXPECT_EQ(said[1], "");
  EXPECT_EQ(said[2], std::string(150'000, 'x'));
}

std::string shown_pid(const FileDescriptor& process) {
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(process.number()));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pid:")) return line.substr(line.find_last_of("\t ") + 1);
  }
  return "none";
}

TEST(ProcessAt, IsTheKernelsWordOfTheProcessThatConnected) {
  const std::string name = "shardwise bounds test " + std::to_string(::getpid());
  const FileDescriptor listening = *listen_local(name);
  const pid_t visitor = ::fork();
  if (visitor == 0) {
    if (const std::optional<FileDescriptor> line = connect_local(name)) {
      for (;;) ::pause();
    }
    ::_exit(1);
  }
  std::optional<FileDescriptor> line;
  while (!line) line = accept_now(listening);
  EXPECT_EQ(shown_pid(process_at(*line)), std::to_string(visitor));
  ::kill(visitor, SIGKILL);
  ::waitpid(visitor, nullptr, 0);
}

TEST(ProcessAt, IsNoneOfTcpAndNoneThatHasEnded) {
  const FileDescriptor listening = *listen_tcp("127.0.0.1", 0);
  const std::optional<FileDescriptor> tcp =
      connect_tcp("127.0.0.1", port_of(listening), in_seconds(10));
  ASSERT_TRUE(tcp);
  EXPECT_FALSE(process_at(*tcp).is_open());
  auto [here, there] = connected();
  EXPECT_TRUE(process_at(here).is_open());
  there.close();
  EXPECT_FALSE(process_at(here).is_open());
}

}  // namespace
}  // namespace shardwise::exec
