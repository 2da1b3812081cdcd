#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.h"
#include "tests/executor/failures/running_program.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr milliseconds kLong{120'000};  // for a machine that is busy with other tests

class Stopped : public testing::TestWithParam<Started> {
 protected:
  /// Stops a rank of three once a checkpoint is complete. \returns what was said; nothing when the
  /// run was over by then, as on a busy machine ranks make one another wait for that long too
  std::optional<std::string> stop_one(std::size_t stopped, int patience_s) const {
    const std::filesystem::path folder = scratch_.path("checkpoints");
    std::filesystem::remove_all(folder);
    const auto [program, arguments] =
        command_of(GetParam(), 3,
                   {scratch_.write(tiny_plan("shardwise", 3, 3, 1)), "--data", "docs/memory.md",
                    "--steps", "1000000", "--checkpoint-every", "3", "--checkpoint-dir", folder,
                    "--timeout", std::to_string(patience_s)});
    RunningProgram run(program, arguments, scratch_.path("out"), scratch_.path("err"));
    while (complete_steps(folder).empty() && !run.wait(milliseconds(5))) {
    }
    const std::vector<pid_t> processes = run.children("shardwise-run");
    if (processes.size() != 3) return std::nullopt;
    ::kill(processes[stopped], SIGSTOP);
    EXPECT_TRUE(run.wait(kLong));
    EXPECT_TRUE(wait_until_gone(processes, kLong));
    std::string said = bytes_of_file(scratch_.path("err"));
    const bool hung = said.find("does not answer") != std::string::npos;
    return hung ? std::optional(std::move(said)) : std::nullopt;
  }

  Scratch scratch_;
};

// A stopped process is a rank that hangs: those who wait for it say so, once, and end the job. They
// say in which collective, unless the machine is so busy that the watchdog is first.
TEST_P(Stopped, RankEndsAllWithWhatEachOfThemDoes) {
  for (const std::size_t stopped : {std::size_t{0}, std::size_t{2}}) {
    std::optional<std::string> said;
    for (int patience_s = 1; !said && patience_s < 60; patience_s *= 2) {
      said = stop_one(stopped, patience_s);
    }
    ASSERT_TRUE(said) << bytes_of_file(scratch_.path("err"));
    const std::size_t first = said->find("shardwise-run: ");
    ASSERT_NE(first, std::string::npos) << *said;
    EXPECT_EQ(said->find("shardwise-run: ", first + 1), std::string::npos) << *said;
    EXPECT_THAT(*said, AllOf(ContainsRegex("waited [0-9]+ s in |none of its operations began"),
                             HasSubstr("\nrank 1")));
  }
}

INSTANTIATE_TEST_SUITE_P(By, Stopped, testing::ValuesIn(ways_of_processes()), [](const auto& by) {
  return by.param == Started::mpi ? "Mpi" : "Sockets";
});

}  // namespace
}  // namespace shardwise::exec::test
