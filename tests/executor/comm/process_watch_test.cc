#include "executor/comm/process_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "executor/comm/socket_world.h"

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

}  // namespace
}  // namespace shardwise::exec
