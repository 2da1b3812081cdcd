#include "planner/files/process_time.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "planner/files/atomic_file_set.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using std::chrono::milliseconds;
using testing::ExitedWithCode;

/// Computes for so long.
void compute(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  volatile unsigned sum = 0;
  while (std::chrono::steady_clock::now() < end) sum = sum + 1;
}

constexpr milliseconds kForever(60'000);
const std::string kLine = "ours: this computes for longer than the 200 ms that --time-limit allows";

TEST(BoundedTime, EndsTheProgramWithTheLimitAndWhatItWasAt) {
  EXPECT_EXIT(
      {
        const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
        note_progress("layout 2 of 9");
        note_progress("layout 3 of 9");
        compute(kForever);
      },
      ExitedWithCode(3), "^" + kLine + "; it was at: layout 3 of 9\n$");
  EXPECT_EXIT(
      {
        const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
        compute(kForever);
      },
      ExitedWithCode(3), "^" + kLine + "\n$");
}

TEST(BoundedTime, EndsAThreadThatComputesBesideOneThatWaits) {
  EXPECT_EXIT(
      {
        const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
        std::thread([] { compute(kForever); }).join();
      },
      ExitedWithCode(3), kLine);
}

// As a pager that shows a screen, or a program that this one waits for.
TEST(BoundedTime, CountsNoTimeInWhichItWaits) {
  const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
  std::this_thread::sleep_for(milliseconds(500));
}

TEST(BoundedTime, EndsWithWhatItBounds) {
  { const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit"); }
  compute(milliseconds(400));
}

TEST(BoundedTime, TakesAwayFilesThatWereNotKept) {
  const test::Scratch scratch;
  EXPECT_EXIT(
      {
        const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
        AtomicFileSet files;
        files.add_folder(scratch.path("folder"));
        files.add(scratch.path("folder/file"), "text");
        compute(kForever);
      },
      ExitedWithCode(3), kLine);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.folder()));
}

int slow_rename(const char* from, const char* to) {
  compute(milliseconds(500));
  return std::rename(from, to);
}

TEST(BoundedTime, KeepsAllFilesOrNone) {
  const test::Scratch scratch;
  EXPECT_EXIT(
      {
        const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
        file_calls().rename = slow_rename;
        AtomicFileSet files;
        for (int i = 0; i < 3; ++i) files.add(scratch.path(std::to_string(i)), "text");
        files.keep();
        compute(kForever);
      },
      ExitedWithCode(3), kLine);
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(scratch.folder())) {
    names.push_back(each.path().filename().string());
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"0", "1", "2"}));
}

TEST(BoundedTime, SaysWhenTheSystemsOwnLimitIsMet) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = 1;
        limit.rlim_max = 10;
        ::setrlimit(RLIMIT_CPU, &limit);
        const BoundedTime bounded(Seconds(60), "ours", "--time-limit");
        compute(kForever);
      },
      ExitedWithCode(3), "^ours: this computes for longer than `ulimit -t` allows\n$");
}

}  // namespace
}  // namespace shardwise
