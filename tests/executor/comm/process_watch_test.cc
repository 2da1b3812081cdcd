#include "executor/comm/sockets/process_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/sockets/door.h"
#include "executor/comm/sockets/handshake.h"
#include "executor/comm/sockets/rendezvous.h"
#include "executor/comm/sockets/socket_world.h"

namespace shardwise::exec {
namespace {

constexpr double kPairPatience = 20;
constexpr int kPairRanks = 2;

/// One rank, in a process of its own: rank 1 gives up and knows no reason, rank 0 waits for one.
[[noreturn]] void run_rank(int rank, int said) {
  const Rendezvous at = {"localhost", 29871, 16, "a rank gives up", "", true};
  SocketJob job(at, rank, kPairRanks, kPairPatience);
  AbortSignal abort;
  ProcessWatch watch(job, abort, kPairPatience, [said](const Failure& failure) {
    if (::write(said, failure.message.data(), failure.message.size()) < 0) ::_exit(1);
  });
  if (rank == 1) watch.stay("rank 1 gave up, and no rank says why");
  while (!abort.raised()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  watch.stay("");
}

// A rank that stops because it takes another for failed, which has not, would wait for ever.
TEST(ProcessWatch, EndsAJobInWhichARankGivesUpWithoutAReason) {
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe(said.data()), 0);
  std::array<pid_t, kPairRanks> ranks{};
  for (int rank = 0; rank < kPairRanks; ++rank) {
    ranks.at(static_cast<std::size_t>(rank)) = ::fork();
    if (ranks.at(static_cast<std::size_t>(rank)) == 0) {
      ::close(said[0]);
      run_rank(rank, said[1]);
    }
  }
  ::close(said[1]);
  std::string message;
  std::array<char, 256> part{};
  for (ssize_t count = 0; (count = ::read(said[0], part.data(), part.size())) > 0;) {
    message.append(part.data(), static_cast<std::size_t>(count));
  }
  ::close(said[0]);
  for (const pid_t rank : ranks) {
    int status = 0;
    ASSERT_EQ(::waitpid(rank, &status, 0), rank);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
  }
  EXPECT_THAT(message, testing::StartsWith("rank 1 gave up, and no rank says why"));
}

/// Processes of this test, each of which runs as a rank.
class StoppedEarly : public testing::Test {
 protected:
  ~StoppedEarly() override {
    for (const pid_t each : processes_) {
      ::kill(each, SIGKILL);
      ::waitpid(each, nullptr, 0);
    }
  }
  static Rendezvous at() {
    return {"localhost", 29872, 16, fmt::format("stopped in {}", ::getpid()), "", true};
  }

  /// Runs every part in a process, where an exception ends it with exit code 3.
  void start(const std::vector<std::function<void()>>& parts) {
    std::array<int, 2> ends{};
    std::array<int, 2> go{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::pipe(go.data()), 0);
    go_ = FileDescriptor(go[0]);
    for (const std::function<void()>& part : parts) {
      const pid_t process = ::fork();
      if (process == 0) {
        ::close(ends[0]);
        ::close(go[1]);
        try {
          part();
        } catch (const std::exception&) {
          ::_exit(3);
        }
        ::_exit(0);
      }
      processes_.push_back(process);
    }
    ::close(ends[1]);
    ended_ = FileDescriptor(ends[0]);
    let_go_ = FileDescriptor(go[1]);
  }
  /// Has those go on that await_stop() once the process is stopped, with all of its threads.
  void await_stop_of(int part) {
    ::waitpid(processes_.at(static_cast<std::size_t>(part)), nullptr, WUNTRACED);
    let_go_ = FileDescriptor();
  }
  void await_stop() const {
    char none = 0;
    if (::read(go_.number(), &none, 1) != 0) ::_exit(1);
  }
  /// How each process ended, as waitpid(2) says it; nothing where one did not.
  std::vector<int> ends() {
    pollfd all = {ended_.number(), POLLIN, 0};  // none has the other end once all have ended
    if (::poll(&all, 1, kLongestMs) != 1) return {};
    std::vector<int> found;
    for (const pid_t each : processes_) {
      int status = 0;
      ::waitpid(each, &status, 0);
      found.push_back(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    processes_.clear();
    return found;
  }

 private:
  static constexpr int kLongestMs = 100'000;
  std::vector<pid_t> processes_;
  FileDescriptor ended_;
  FileDescriptor go_;
  FileDescriptor let_go_;
};

constexpr int kStoppedRanks = 3;
constexpr double kShortPatience = 2;

// Defect N9: such a rank stayed for ever, as no line led to it.
TEST_F(StoppedEarly, RankIsEndedThatHasMetTheOthers) {
  const Rendezvous where = at();
  for (const int stopped : {0, 2}) {
    std::vector<std::function<void()>> parts;
    for (int rank = 0; rank < kStoppedRanks; ++rank) {
      parts.emplace_back([this, &where, rank, stopped] {
        SocketJob job(where, rank, kStoppedRanks, kPairPatience);
        if (rank == stopped) ::raise(SIGSTOP);
        await_stop();
        AbortSignal abort;
        const ProcessWatch watch(job, abort, kShortPatience, [](const Failure&) {});
      });
    }
    start(parts);
    await_stop_of(stopped);
    const std::vector<int> ended = ends();
    ASSERT_EQ(ended.size(), std::size_t{kStoppedRanks}) << "a rank stayed";
    for (int rank = 0; rank < kStoppedRanks; ++rank) {
      EXPECT_EQ(ended.at(static_cast<std::size_t>(rank)), rank == stopped ? 128 + SIGKILL : 3)
          << rank << " where " << stopped << " is stopped";
    }
  }
}

TEST_F(StoppedEarly, RankZeroIsEndedByThoseThatHaveFoundIt) {
  const Rendezvous where = at();
  start({[&where] {
           const Digest key = where.key(kStoppedRanks);
           std::vector<FileDescriptor> listening;
           listening.push_back(listen_local(local_place(where, key, 0)).value());
           Door door({Purpose::rendezvous, 0, kStoppedRanks, key, kMemberBytes, true});
           std::vector<Door::Guest> guests;
           while (guests.empty()) guests = door.admit(listening, in_seconds(kPairPatience));
           send_all(guests.front().line, bytes_of(Member{}), in_seconds(kPairPatience));
           ::raise(SIGSTOP);
         },
         [&where] {
           SocketHub hub;
           meet(where, 1, kStoppedRanks, hub, kShortPatience);
         }});
  EXPECT_THAT(ends(), testing::ElementsAre(128 + SIGKILL, 3));
}

TEST_F(StoppedEarly, RankIsEndedByRankZeroThatItHasFound) {
  const Rendezvous where = at();
  start({[&where] {
           SocketHub hub;
           meet(where, 0, kStoppedRanks, hub, kShortPatience);
         },
         [&where] {
           const Digest key = where.key(kStoppedRanks);
           std::optional<FileDescriptor> line;
           while (!line) line = connect_local(local_place(where, key, 0));
           Hello hello;
           hello.from = 1;
           hello.size = kStoppedRanks;
           const HelloBytes sent = bytes_of(hello);
           ChallengeBytes challenge{};
           const Deadline until = in_seconds(kPairPatience);
           send_all(*line, sent, until);
           receive_all(*line, challenge, until);
           send_all(*line, proof_and(bytes_of(Member{}), sent, challenge, key), until);
           std::array<std::byte, kMemberBytes> rank_zero{};
           receive_all(*line, rank_zero, until);
           ::raise(SIGSTOP);
         }});
  EXPECT_THAT(ends(), testing::ElementsAre(3, 128 + SIGKILL));
}

}  // namespace
}  // namespace shardwise::exec
