#include "executor/comm/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/socket.h"
#include "executor/comm/socket_hub.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr int kRanks = 3;
constexpr double kPatience = 60;
/// So many that waiting for each of them in turn would take longer than the patience.
constexpr int kStrangers = 100;

FileDescriptor taken_port() { return *listen_tcp(0, true); }

FileDescriptor connected_to(int port) {
  for (;;) {
    std::optional<FileDescriptor> line = connect_tcp("127.0.0.1", port, in_seconds(kPatience));
    if (line) return *std::move(line);
  }
}

/// Connections of which some say nothing, some say what no rank says, and some end at once.
std::vector<FileDescriptor> strangers_at(int port) {
  std::vector<FileDescriptor> lines;
  const std::vector<std::byte> garbage(2'000, std::byte{'G'});
  for (int i = 0; i < kStrangers; ++i) {
    lines.push_back(connected_to(port));
    if (i % 3 == 1) send_all(lines.back(), garbage, in_seconds(kPatience));
    if (i % 3 == 2) lines.back().close();
  }
  return lines;
}

/// Ranks as threads, each with what only it has.
class Job {
 public:
  explicit Job(Rendezvous at) : at_(std::move(at)), members_(kRanks) {
    for (int rank = 0; rank < kRanks; ++rank) hubs_.push_back(std::make_unique<SocketHub>(true));
  }
  std::jthread start(int rank) {
    return std::jthread([this, rank] {
      SocketHub& hub = *hubs_[static_cast<std::size_t>(rank)];
      members_[static_cast<std::size_t>(rank)] = meet(at_, rank, kRanks, hub.own(), kPatience);
      hub.know(members_[static_cast<std::size_t>(rank)]);
    });
  }
  void expect_all_know_all() const {
    for (const std::vector<Member>& known : members_) {
      ASSERT_EQ(known.size(), hubs_.size());
      for (std::size_t r = 0; r < known.size(); ++r) {
        EXPECT_EQ(known[r].token, hubs_[r]->own().token) << "rank " << r;
      }
    }
  }
  SocketHub& hub(int rank) { return *hubs_[static_cast<std::size_t>(rank)]; }

 private:
  Rendezvous at_;
  std::vector<std::unique_ptr<SocketHub>> hubs_;
  std::vector<std::vector<Member>> members_;
};

// Whoever has the port says nothing to those who come.
TEST(Rendezvous, IsAtTheNextPortWhereOneIsTaken) {
  const FileDescriptor taken = taken_port();
  Job job({"localhost", port_of(taken), 16, "taken"});
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(job.start(rank));
  ranks.clear();
  job.expect_all_know_all();
}

TEST(Rendezvous, IsAtANameWhereAllPortsAreTakenAndRanksAreOfOneHost) {
  const FileDescriptor taken = taken_port();
  Job job({"localhost", port_of(taken), 1, "name " + std::to_string(port_of(taken))});
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(job.start(rank));
  ranks.clear();
  job.expect_all_know_all();
}

TEST(Rendezvous, NamesThePortsWhereAllAreTaken) {
  const FileDescriptor taken = taken_port();
  const int port = port_of(taken);
  try {
    meet({"elsewhere", port, 1, "taken"}, 0, 2, Member(), kPatience);
    FAIL() << "met";
  } catch (const IoError& broken) {
    EXPECT_EQ(broken.what(), "ports " + std::to_string(port) + " to " + std::to_string(port) +
                                 " of this host are taken");
  }
}

/// Stands between rank 0 and those that look for it, until it goes.
class Between {
 public:
  explicit Between(int host) : listening_(taken_port()), host_(host) {}
  int port() const { return port_of(listening_); }

  /// Hands on what both sides say until rank 0 has greeted `ranks` of them and told all of them but
  /// the lowest who that is.
  void serve(std::size_t ranks) {
    while (lines_.size() < ranks || !all_told()) {
      std::optional<FileDescriptor> come = accept_now(listening_);
      if (come) lines_.push_back({*std::move(come), connected_to(host_), 0, 0});
      for (Line& line : lines_) {
        line.asked += pass(line.asks, line.host);
        line.told += pass(line.host, line.asks);
      }
    }
    lines_.clear();
  }

 private:
  struct Line {
    FileDescriptor asks;
    FileDescriptor host;
    std::size_t asked = 0;  // bytes: a greeting
    std::size_t told = 0;   // as many, and a number
  };
  static std::size_t pass(const FileDescriptor& from, const FileDescriptor& to) {
    std::array<std::byte, 4096> some;  // NOLINT(*member-init*): read into
    const ssize_t count = ::recv(from.number(), some.data(), some.size(), MSG_DONTWAIT);
    if (count <= 0) return 0;
    const auto got = static_cast<std::size_t>(count);
    send_all(to, std::span(some).first(got), in_seconds(kPatience));
    return got;
  }
  bool all_told() const {
    std::size_t greeted = 0;
    std::size_t told = 0;
    for (const Line& line : lines_) {
      greeted += line.asked > 0 && line.told >= line.asked;
      told += line.asked > 0 && line.told > line.asked;
    }
    return greeted == lines_.size() && told + 1 >= lines_.size();
  }

  FileDescriptor listening_;
  int host_;
  std::vector<Line> lines_;
};

// Ranks 2 and 3 have come and rank 1 has not when rank 0 is gone: the lower of them says so.
TEST(Rendezvous, NamesRankZeroThatIsGoneWhoeverHasCome) {
  constexpr int kAll = 4;
  int port = 0;
  { port = port_of(taken_port()); }
  const std::string job = "gone " + std::to_string(port);
  const auto outcome = [&](int rank, int at) -> std::string {
    try {
      meet({"127.0.0.1", at, 1, job}, rank, kAll, SocketHub(true).own(), kPatience);
      return "met";
    } catch (const Aborted& ended) {
      return std::string("silent: ") + ended.what();
    } catch (const IoError& broken) {
      return broken.what();
    }
  };
  const std::jthread first([&] { outcome(0, port); });
  Between between(port);
  std::string two;
  std::string three;
  {
    const std::jthread second([&] { two = outcome(2, between.port()); });
    const std::jthread third([&] { three = outcome(3, between.port()); });
    between.serve(2);
  }
  EXPECT_THAT(two, testing::StartsWith("rank 0 is gone: its process "));
  EXPECT_EQ(three, "silent: rank 2 says why");
}

TEST(Rendezvous, IsNotForStrangers) {
  int port = 0;
  { port = port_of(taken_port()); }
  Job job({"localhost", port, 1, "strangers"});
  std::jthread first = job.start(0);
  const std::vector<FileDescriptor> strangers = strangers_at(port);
  std::vector<std::jthread> others;
  for (int rank = 1; rank < kRanks; ++rank) others.push_back(job.start(rank));
  others.clear();
  first.join();
  job.expect_all_know_all();
}

TEST(SocketHub, JoinsGroupsWhateverStrangersSayToIt) {
  const FileDescriptor taken = taken_port();
  Job job({"localhost", port_of(taken), 16, "hub"});
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(job.start(rank));
  }
  const std::vector<FileDescriptor> strangers = strangers_at(job.hub(0).own().port);
  AbortSignal abort;
  std::vector<std::vector<FileDescriptor>> lines(kRanks);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      lines[static_cast<std::size_t>(rank)] =
          job.hub(rank).join({0, 1, 2}, 7, {&abort, kPatience, rank});
    });
  }
  ranks.clear();
  EXPECT_FALSE(abort.raised()) << abort.message();
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    for (std::size_t other = 0; other < lines.size(); ++other) {
      EXPECT_EQ(lines[rank][other].is_open(), rank != other);
    }
  }
}

}  // namespace
}  // namespace shardwise::exec
