// What ranks that are processes do, gathered by one of them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/sockets/process_watch.h"
#include "executor/comm/sockets/rendezvous.h"
#include "executor/comm/sockets/socket_world.h"
#include "executor/status/find_jobs.h"
#include "executor/status/live_job.h"
#include "executor/status/rank_phase.h"

namespace shardwise::exec {
namespace {

constexpr int kGatheredRanks = 3;
constexpr double kGatherPatience = 60;

/// A rank whose step is its number, until it is killed.
[[noreturn]] void stay_as(int rank, const std::string& name, int said) {
  const Rendezvous at = {"localhost", 29873, 16, name, "", true};
  SocketJob job(at, rank, kGatheredRanks, kGatherPatience);
  AbortSignal abort;
  RankPhase phase(abort, rank, Phase::preparing, 100);
  ProcessWatch watch(job, abort, kGatherPatience, [](const Failure&) {});
  phase.begin_step(rank);
  const std::string number = "00000000" + name.substr(name.size() - 8);
  const LiveJob live(number, rank, {"train", "", "", 0}, [&watch] { return watch.statuses(); });
  if (::write(said, "r", 1) != 1) ::_exit(1);
  for (;;) ::pause();
}

/// Three ranks, each a process.
class Gathered : public testing::Test {
 protected:
  Gathered() {
    name_ = std::to_string(::getpid());
    name_.insert(0, 8 - std::min<std::size_t>(8, name_.size()), '0');
    std::array<int, 2> said{};
    EXPECT_EQ(::pipe(said.data()), 0);
    for (int rank = 0; rank < kGatheredRanks; ++rank) {
      const pid_t process = ::fork();
      if (process == 0) stay_as(rank, "gathered in " + name_, said[1]);
      ranks_.push_back(process);
    }
    ::close(said[1]);
    std::array<char, kGatheredRanks> ready{};
    for (char& each : ready) EXPECT_EQ(::read(said[0], &each, 1), 1);
    ::close(said[0]);
  }
  ~Gathered() override {
    for (const pid_t each : ranks_) ::kill(each, SIGKILL);
    for (const pid_t each : ranks_) ::waitpid(each, nullptr, 0);
  }
  JobStatus status() const {
    const std::vector<JobStatus> jobs = find_jobs("00000000" + name_);
    EXPECT_EQ(jobs.size(), 1U);
    return jobs.empty() ? JobStatus() : jobs[0];
  }

  std::string name_;
  std::vector<pid_t> ranks_;
};

TEST_F(Gathered, StatusIsThatOfEveryRank) {
  const JobStatus job = status();
  EXPECT_TRUE(job.all_answer());
  EXPECT_EQ(job.process, ranks_[0]);
  ASSERT_EQ(job.ranks.size(), 3U);
  for (int rank = 0; rank < kGatheredRanks; ++rank) {
    const RankStatus& each = job.ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(each.rank, rank);
    EXPECT_EQ(each.process, ranks_[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(each.answer, Answer::given);
    EXPECT_EQ(each.phase, Phase::training);
    EXPECT_EQ(each.step, rank + 1);
    EXPECT_EQ(each.steps, 100);
  }
}

// Whichever it is: rank 0 is asked first, and the one behind it where that is stopped.
TEST_F(Gathered, RankThatIsStoppedIsSilentSinceThenAndDidWhatItSaidLast) {
  for (const int stopped : {0, 2}) {
    // Unasked they tell it once a second.
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    const auto process = ranks_[static_cast<std::size_t>(stopped)];
    ASSERT_EQ(::kill(process, SIGSTOP), 0);
    ::waitpid(process, nullptr, WUNTRACED);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    const JobStatus job = status();
    EXPECT_FALSE(job.all_answer());
    ASSERT_EQ(job.ranks.size(), 3U) << "when rank " << stopped << " is stopped";
    for (int rank = 0; rank < kGatheredRanks; ++rank) {
      const RankStatus& each = job.ranks[static_cast<std::size_t>(rank)];
      EXPECT_EQ(each.answer, rank == stopped ? Answer::silent : Answer::given) << rank;
      EXPECT_EQ(each.step, rank + 1);
      if (rank == stopped) {
        EXPECT_GE(each.heard_s, 1.5);
      }
    }
    ASSERT_EQ(::kill(process, SIGCONT), 0);
  }
  // A status that was made just before is told to those that come later.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(status().all_answer());
}

TEST_F(Gathered, JobOfWhichAllAreStoppedDoesNotAnswer) {
  for (const pid_t each : ranks_) {
    ASSERT_EQ(::kill(each, SIGSTOP), 0);
    ::waitpid(each, nullptr, WUNTRACED);
  }
  const JobStatus job = status();
  EXPECT_FALSE(job.answers);
  EXPECT_EQ(job.process, ranks_[0]);
}

}  // namespace
}  // namespace shardwise::exec
