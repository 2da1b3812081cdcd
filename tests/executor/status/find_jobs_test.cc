// Which jobs are found, and whom that believes.
#include "executor/status/find_jobs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/sockets/socket.h"
#include "executor/status/live_job.h"
#include "executor/status/rank_phase.h"

namespace shardwise::exec {
namespace {

constexpr uid_t kStranger = 65534;

/// The one that a process of this number answers for.
std::optional<JobStatus> job_of(pid_t process) {
  for (const JobStatus& each : find_jobs()) {
    if (each.process == process) return each;
  }
  return std::nullopt;
}

TEST(FindJobs, FindsAJobOfThreadsWithWhatItsRanksDo) {
  AbortSignal abort;
  const RankPhases phases = phases_of_ranks(abort, 3, Phase::preparing, 20);
  phases[1]->begin_step(6);
  phases[2]->begin(Phase::saving_checkpoint);
  std::optional<LiveJob> live(std::in_place, JobFacts{"train", "p.json", "run1", 5}, abort);
  const std::optional<JobStatus> job = job_of(::getpid());
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->all_answer());
  EXPECT_EQ(job->user, ::geteuid());
  EXPECT_EQ(job->verb, "train");
  EXPECT_EQ(job->plan, "p.json");
  EXPECT_EQ(job->folder, std::filesystem::absolute("run1").string());
  EXPECT_EQ(job->launcher, 5);
  ASSERT_EQ(job->ranks.size(), 3U);
  EXPECT_EQ(job->ranks[0].phase, Phase::preparing);
  EXPECT_EQ(job->ranks[1].phase, Phase::training);
  EXPECT_EQ(job->ranks[1].step, 7);
  EXPECT_EQ(job->ranks[1].steps, 20);
  EXPECT_EQ(job->ranks[2].phase, Phase::saving_checkpoint);
  EXPECT_EQ(job->ranks[2].process, ::getpid());
  EXPECT_EQ(find_jobs(job->job).size(), 1U);
  live.reset();
  EXPECT_FALSE(job_of(::getpid()));
}

/// A process that does `part` as another user and waits until this is gone.
class OtherUser {
 public:
  explicit OtherUser(const std::function<void()>& part) {
    EXPECT_EQ(::pipe(ready_.data()), 0);
    EXPECT_EQ(::pipe(end_.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(end_[1]);
      if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(1);
      part();
      char none = 0;
      if (::write(ready_[1], "r", 1) != 1) ::_exit(1);
      ::_exit(::read(end_[0], &none, 1) == 0 ? 0 : 1);
    }
    ::close(ready_[1]);
    char none = 0;
    is_ready_ = ::read(ready_[0], &none, 1) == 1;
  }
  ~OtherUser() {
    ::close(end_[1]);
    ::waitpid(process_, nullptr, 0);
    ::close(ready_[0]);
    ::close(end_[0]);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  bool is_ready() const { return is_ready_; }
  pid_t process() const { return process_; }

 private:
  std::array<int, 2> ready_{};
  std::array<int, 2> end_{};
  pid_t process_ = -1;
  bool is_ready_ = false;
};

// Any user may listen under a name that says root: more of them than jobs are asked.
TEST(FindJobs, BelievesNoStrangerThatPassesForThisUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) {
    std::string job = std::to_string(i);
    job.insert(0, 16 - job.size(), '0');
    names.push_back(status_name(job, 0));
  }
  const OtherUser stranger([&] {
    static std::vector<FileDescriptor> listening;
    for (const std::string& name : names) {
      std::optional<FileDescriptor> one = listen_local(name);
      if (one) listening.push_back(*std::move(one));
    }
  });
  ASSERT_TRUE(stranger.is_ready());
  AbortSignal abort;
  const LiveJob live({"train", "", "", 0}, abort);
  EXPECT_FALSE(job_of(stranger.process()));
  EXPECT_TRUE(job_of(::getpid()));
}

TEST(FindJobs, FindsNoJobOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  std::array<int, 2> go{};
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe(go.data()), 0);
  ASSERT_EQ(::pipe(said.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    char none = 0;
    if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) ::_exit(1);
    if (::read(go[0], &none, 1) != 1) ::_exit(1);
    const bool found = std::ranges::any_of(
        find_jobs(), [](const JobStatus& each) { return each.user != kStranger; });
    ::_exit(found ? 2 : 0);
  }
  AbortSignal abort;
  const LiveJob live({"train", "", "", 0}, abort);
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int each : {go[0], go[1], said[0], said[1]}) ::close(each);
}

}  // namespace
}  // namespace shardwise::exec
