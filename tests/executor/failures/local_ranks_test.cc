// Ranks as processes that shardwise-run starts itself: how they end with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
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

/// The children of a process, the first one first. Faster than a look at all processes.
/// Source: proc(5), /proc/[pid]/task/[tid]/children.
std::vector<pid_t> children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::ifstream in("/proc/" + number + "/task/" + number + "/children");
  return {std::istream_iterator<pid_t>(in), std::istream_iterator<pid_t>()};
}

/// What a run of three ranks says of which one is stopped as soon as it is there. Without rank 0
/// nobody meets anybody, so that one is stopped first, and goes on where it is not the one.
std::string said_where_one_is_stopped(Started started, std::size_t stopped) {
  const Scratch scratch;
  const auto [program, arguments] =
      command_of(started, 3,
                 {scratch.write(tiny_plan("shardwise", 3, 3, 1)), "--data", kTrainingText,
                  "--steps", "1000000", "--timeout", "2"});
  RunningProgram run(program, arguments, scratch.path("out"), scratch.path("err"));
  std::vector<pid_t> processes;
  while (processes.size() <= stopped) {
    // mpirun waits for what it starts to become the program.
    processes =
        started == Started::mpi ? run.children("shardwise-run") : children_of(run.process());
    if (started == Started::local && !processes.empty()) ::kill(processes[0], SIGSTOP);
    if (processes.empty() && run.wait(milliseconds(0))) return "it was over before";
  }
  ::kill(processes[stopped], SIGSTOP);
  if (stopped != 0) ::kill(processes[0], SIGCONT);
  EXPECT_TRUE(run.wait(kLongWait)) << "the run stayed";
  EXPECT_EQ(run.exit_code(), 3);
  EXPECT_TRUE(wait_until_gone(processes, kLongWait)) << "a rank stayed";
  return shardwise::test::bytes_of_file(scratch.path("err"));
}

bool lists_children() {
  const std::string own = std::to_string(::getpid());
  return std::filesystem::exists("/proc/" + own + "/task/" + own + "/children");
}

/// Tries until the rank was stopped before it met any: a busy machine may stop it later, and then
/// the others end it.
void expect_stopped_in_vain(Started started, std::size_t stopped, const std::string& waited) {
  std::string said;
  for (int trial = 0; trial < 5 && said.find(waited) == std::string::npos; ++trial) {
    said = said_where_one_is_stopped(started, stopped);
  }
  EXPECT_THAT(said, testing::HasSubstr(waited));
}

// Defect N9, before the rank has met any: no rank knows its process, but the one that started it
// does.
TEST(LocalRanks, EndOneThatIsStoppedBeforeItMeetsAny) {
  if (!lists_children()) GTEST_SKIP() << "this kernel lists no children";
  expect_stopped_in_vain(Started::local, 0, "rank 1 found no rank 0 on this host for 2 s");
  expect_stopped_in_vain(Started::local, 1, "rank 0 waited 2 s for rank 1");
}

// MPI_Init itself waits for ever.
TEST(RanksOfMpi, EndWhereOneIsStoppedBeforeItMeetsAny) {
  if (!lists_children()) GTEST_SKIP() << "this kernel lists no children";
  const std::vector<Started> ways = ways_of_processes();
  if (std::ranges::find(ways, Started::mpi) == ways.end()) GTEST_SKIP() << "without MPI";
  expect_stopped_in_vain(Started::mpi, 1, "rank 0 waited 2 s in MPI_Init for the other ranks");
}

}  // namespace
}  // namespace shardwise::exec::test
