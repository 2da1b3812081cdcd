#include "executor/comm/sockets/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/sockets/handshake.h"
#include "executor/comm/sockets/member.h"
#include "executor/comm/sockets/socket.h"
#include "executor/comm/sockets/socket_hub.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr int kMeetingRanks = 3;
constexpr double kMeetingPatience = 60;
/// So many that waiting for each of them in turn would take longer than the patience.
constexpr int kStrangers = 100;

constexpr const char* kSecret = "the secret of these tests";

FileDescriptor taken_port() { return *listen_tcp("127.0.0.1", 0); }

/// A rendezvous over TCP, as processes of several hosts have it.
Rendezvous at_port(int port, int ports, const std::string& job) {
  return {"127.0.0.1", port, ports, job, kSecret, false};
}

FileDescriptor connected_to(int port) {
  for (;;) {
    std::optional<FileDescriptor> line =
        connect_tcp("127.0.0.1", port, in_seconds(kMeetingPatience));
    if (line) return *std::move(line);
  }
}

/// Connections of which some say nothing, some say what no rank says, and some end at once.
std::vector<FileDescriptor> strangers_at(int port) {
  std::vector<FileDescriptor> lines;
  const std::vector<std::byte> garbage(2'000, std::byte{'G'});
  for (int i = 0; i < kStrangers; ++i) {
    lines.push_back(connected_to(port));
    if (i % 3 == 1) send_all(lines.back(), garbage, in_seconds(kMeetingPatience));
    if (i % 3 == 2) lines.back().close();
  }
  return lines;
}

/// Ranks as threads, each with what only it has.
class Job {
 public:
  explicit Job(Rendezvous at) : at_(std::move(at)), members_(kMeetingRanks) {
    for (int rank = 0; rank < kMeetingRanks; ++rank) hubs_.push_back(std::make_unique<SocketHub>());
  }
  std::jthread start(int rank) {
    return std::jthread([this, rank] {
      SocketHub& hub = *hubs_[static_cast<std::size_t>(rank)];
      const Met met = meet(at_, rank, kMeetingRanks, hub, kMeetingPatience);
      members_[static_cast<std::size_t>(rank)] = met.members;
      hub.know(rank, met.members, met.key);
    });
  }
  void expect_all_know_all() const {
    for (const std::vector<Member>& known : members_) {
      ASSERT_EQ(known.size(), hubs_.size());
      for (std::size_t r = 0; r < known.size(); ++r) {
        EXPECT_EQ(known[r].name, hubs_[r]->own().name) << "rank " << r;
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
  Job job(at_port(port_of(taken), 16, "taken"));
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kMeetingRanks; ++rank) ranks.push_back(job.start(rank));
  ranks.clear();
  job.expect_all_know_all();
}

// No network is listened to, and another rendezvous of the same name may be there.
TEST(Rendezvous, IsAtALocalSocketWhereRanksAreOfOneHost) {
  const std::string name = "local " + std::to_string(::getpid());
  std::vector<std::unique_ptr<Job>> jobs;
  for (const char* const secret : {"", kSecret}) {
    jobs.push_back(std::make_unique<Job>(Rendezvous{"node7", 1, 2, name, secret, true}));
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kMeetingRanks; ++rank) ranks.push_back(jobs.back()->start(rank));
    ranks.clear();
    jobs.back()->expect_all_know_all();
    for (int rank = 0; rank < kMeetingRanks; ++rank)
      EXPECT_EQ(jobs.back()->hub(rank).own().port, 0);
  }
}

// Any user could once block every job without a secret: its sixteen names follow from defaults.
TEST(Rendezvous, IsBehindTheNamesThatAnotherProcessHasTaken) {
  const Rendezvous at = {"localhost", 1, 2, "squatted " + std::to_string(::getpid()), "", true};
  std::vector<FileDescriptor> squatters;
  for (int place = 0; place < 60; ++place) {
    auto name = listen_local(local_place(at, at.key(kMeetingRanks), place));
    ASSERT_TRUE(name);
    squatters.push_back(*std::move(name));
  }
  Job job(at);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kMeetingRanks; ++rank) ranks.push_back(job.start(rank));
  ranks.clear();
  job.expect_all_know_all();
}

std::string why_not(const Rendezvous& at, int rank, double patience_s) {
  try {
    SocketHub hub;
    meet(at, rank, 2, hub, patience_s);
    return "met";
  } catch (const IoError& broken) {
    return broken.what();
  }
}

TEST(Rendezvous, NamesThePortsWhereAllAreTaken) {
  const FileDescriptor taken = taken_port();
  const std::string port = std::to_string(port_of(taken));
  EXPECT_EQ(why_not(at_port(port_of(taken), 1, "taken"), 0, kMeetingPatience),
            "ports " + port + " to " + port + " of this host are in use");
}

// 192.0.2.0/24 is for documents: no host has its addresses. Source: RFC 5737.
TEST(Rendezvous, ListensOnTheAddressesOfItsHostAlone) {
  EXPECT_EQ(why_not({"192.0.2.77", 1, 16, "elsewhere", kSecret}, 0, kMeetingPatience),
            "192.0.2.77 is not an address of this host, where rank 0 runs");
  int port = 0;
  { port = port_of(taken_port()); }
  Job job(at_port(port, 1, "interface"));
  const std::jthread first = job.start(0);
  { const FileDescriptor there = connected_to(port); }
  for (const std::string& address : own_addresses()) {
    EXPECT_FALSE(connect_tcp(address, port, in_seconds(1))) << address;
    EXPECT_TRUE(listen_tcp(address, port)) << address;
  }
  std::vector<std::jthread> others;
  for (int rank = 1; rank < kMeetingRanks; ++rank) others.push_back(job.start(rank));
  others.clear();
  for (int rank = 1; rank < kMeetingRanks; ++rank) {
    EXPECT_STREQ(job.hub(rank).own().addresses[0].data(), "127.0.0.1");
    EXPECT_EQ(job.hub(rank).own().addresses[1][0], '\0');
  }
}

// (D1): a process that says the job's name and a rank once was that rank.
TEST(Rendezvous, IsNotForProcessesThatHaveAnotherSecretOrJobOrNumberOfRanks) {
  int port = 0;
  { port = port_of(taken_port()); }
  const Rendezvous at = at_port(port, 1, "secret");
  Rendezvous other_secret = at;
  other_secret.secret = "another secret of these tests";
  Rendezvous other_job = at;
  other_job.job = "another job";
  std::vector<std::string> notes;
  other_secret.note = [&](const std::string& note) { notes.push_back(note); };
  std::string first;
  std::vector<std::string> others(2);
  {
    const std::jthread zero([&] { first = why_not(at, 0, 1.5); });
    const std::jthread one([&] { others[0] = why_not(other_secret, 1, 1); });
    const std::jthread two([&] { others[1] = why_not(other_job, 1, 1); });
  }
  EXPECT_THAT(first, testing::MatchesRegex("rank 0 waited 1.5 s for rank 1; [0-9]+ connections did "
                                           "not prove the job's secret"));
  // While there is time to do something about it.
  const std::string ports = std::to_string(port) + " to " + std::to_string(port);
  EXPECT_THAT(notes, testing::ElementsAre("rank 1 looks for rank 0 on 127.0.0.1, ports " + ports +
                                          ", for up to 1 s; a process there is of another job "
                                          "or has another secret"));
  for (const std::string& each : others) {
    EXPECT_EQ(each, "rank 1 found no rank 0 on 127.0.0.1, ports " + std::to_string(port) + " to " +
                        std::to_string(port) +
                        ", for 1 s; a process there is of another job or has another secret");
  }
}

// (D1): a process of uid 65534 once joined a job of root, and could as well have been its rank 0.
TEST(Rendezvous, IsNotForProcessesOfAnotherUserWhereThereIsNoSecret) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  for (const int rank : {0, 1}) {
    const std::string name = "users " + std::to_string(::getpid()) + std::to_string(rank);
    const Rendezvous at = {"localhost", 1, 2, name, "", true};
    const pid_t nobody = ::fork();
    if (nobody == 0) {
      const bool is_nobody = ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
      ::_exit(is_nobody && why_not(at, 1 - rank, 1.5) != "met" ? 0 : 1);
    }
    EXPECT_THAT(why_not(at, rank, 1.5),
                testing::StartsWith(rank == 0 ? "rank 0 waited 1.5 s for rank 1"
                                              : "rank 1 found no rank 0 on this host for 1.5 s"));
    int status = 1;
    ::waitpid(nobody, &status, 0);
    EXPECT_EQ(status, 0) << "the other user's process met this one";
  }
}

/// Stands between rank 0 and those that look for it, until it goes.
class Between {
 public:
  explicit Between(int host) : listening_(taken_port()), host_(host) {}
  int port() const { return port_of(listening_); }

  /// Hands on what both sides say until rank 0 has admitted `ranks` of them and told all of them
  /// but the lowest who that is.
  void serve(std::size_t ranks) {
    while (lines_.size() < ranks || !all_told()) {
      std::optional<FileDescriptor> come = accept_now(listening_);
      if (come) lines_.push_back({*std::move(come), connected_to(host_), 0});
      for (Line& line : lines_) {
        pass(line.asks, line.host);
        line.told += pass(line.host, line.asks);
      }
    }
    lines_.clear();
  }

 private:
  struct Line {
    FileDescriptor asks;
    FileDescriptor host;
    std::size_t told = 0;  // bytes: a challenge, rank 0's member and a number
  };
  static std::size_t pass(const FileDescriptor& from, const FileDescriptor& to) {
    std::array<std::byte, 4096> some;  // NOLINT(*member-init*): read into
    const ssize_t count = ::recv(from.number(), some.data(), some.size(), MSG_DONTWAIT);
    if (count <= 0) return 0;
    const auto got = static_cast<std::size_t>(count);
    send_all(to, std::span(some).first(got), in_seconds(kMeetingPatience));
    return got;
  }
  bool all_told() const {
    constexpr std::size_t kAdmitted = kChallengeBytes + kMemberBytes;
    std::size_t admitted = 0;
    std::size_t told = 0;
    for (const Line& line : lines_) {
      admitted += line.told >= kAdmitted;
      told += line.told > kAdmitted;
    }
    return admitted == lines_.size() && told + 1 >= lines_.size();
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
      SocketHub hub;
      meet(at_port(at, 1, job), rank, kAll, hub, kMeetingPatience);
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
  EXPECT_EQ(three, "silent: rank 2 reports why");
}

TEST(Rendezvous, IsNotForStrangers) {
  int port = 0;
  { port = port_of(taken_port()); }
  Job job(at_port(port, 1, "strangers"));
  std::jthread first = job.start(0);
  const std::vector<FileDescriptor> strangers = strangers_at(port);
  std::vector<std::jthread> others;
  for (int rank = 1; rank < kMeetingRanks; ++rank) others.push_back(job.start(rank));
  others.clear();
  first.join();
  job.expect_all_know_all();
}

TEST(SocketHub, JoinsGroupsWhateverStrangersSayToIt) {
  const FileDescriptor taken = taken_port();
  Job job(at_port(port_of(taken), 16, "hub"));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kMeetingRanks; ++rank) ranks.push_back(job.start(rank));
  }
  const std::vector<FileDescriptor> strangers = strangers_at(job.hub(0).own().port);
  AbortSignal abort;
  std::vector<std::vector<FileDescriptor>> lines(kMeetingRanks);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kMeetingRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      lines[static_cast<std::size_t>(rank)] =
          job.hub(rank).join({0, 1, 2}, Stream::send, {&abort, kMeetingPatience, rank});
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
