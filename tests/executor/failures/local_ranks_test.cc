// Ranks as processes that shardwise-run starts itself: how they end with it.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using std::chrono::milliseconds;

// SIGKILL leaves the one that started them no time to say so: the kernel ends them.
TEST(LocalRanks, EndWithTheProcessThatStartedThem) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    const Scratch scratch;
    const std::string metrics = scratch.path("metrics.jsonl");
    const auto [program, arguments] =
        command_of(Started::local, 2,
                   {scratch.write(tiny_plan("shardwise", 3, 2, 1)), "--data", kTrainingText,
                    "--steps", "1000000", "--metrics", metrics});
    RunningProgram run(program, arguments, scratch.path("out"), scratch.path("err"));
    while (losses_of(metrics).empty() && !run.wait(milliseconds(5))) {
    }
    const std::vector<pid_t> processes = run.children("shardwise-run");
    ASSERT_EQ(processes.size(), 2U);
    run.signal(signal);
    ASSERT_TRUE(run.wait(kLongWait));
    EXPECT_EQ(run.exit_code(), 128 + signal);
    EXPECT_TRUE(wait_until_gone(processes, kLongWait));
    EXPECT_EQ(shardwise::test::bytes_of_file(scratch.path("err")), "");
  }
}

}  // namespace
}  // namespace shardwise::exec::test
