#include "planner/files/process_time.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
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

void limit_processor_time(rlim_t soft, rlim_t hard) {
  const rlimit limit = {soft, hard};
  ::setrlimit(RLIMIT_CPU, &limit);
}

const std::string kSystemLine = "^ours: this computes for longer than `ulimit -t` allows\n$";

TEST(BoundedTime, SaysWhenTheSystemsOwnLimitIsMet) {
  EXPECT_EXIT(
      {
        limit_processor_time(1, 10);
        const BoundedTime bounded(Seconds(60), "ours", "--time-limit");
        compute(kForever);
      },
      ExitedWithCode(3), kSystemLine);
}

// The kernel kills at the hard limit, to which a plain `ulimit -t` sets the soft one as well.
TEST(ProcessorLimit, IsAnsweredBeforeTheKernelKills) {
  for (const rlim_t hard : {rlim_t{1}, rlim_t{2}}) {
    EXPECT_EXIT(
        {
          limit_processor_time(hard, hard);
          answer_processor_limit("ours");
          compute(kForever);
        },
        ExitedWithCode(3), kSystemLine)
        << hard;
  }
}

void compute_and_take_signals() {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  // Processor time, of which a busy machine gives less than the clock has.
  while (std::clock() < CLOCKS_PER_SEC * 7 / 10) {
  }
}

TEST(ProcessorLimit, IsAnsweredByTheThreadThatWritesFiles) {
  const test::Scratch scratch;
  EXPECT_EXIT(
      {
        limit_processor_time(1, 1);
        answer_processor_limit("ours");
        AtomicFileSet files;
        files.add(scratch.path("file"), "text");
        {
          const LimitHeld held;  // so that the other thread gets it
          std::thread(compute_and_take_signals).join();
          files.keep();
          std::fputs("kept ", stderr);
        }
        std::exit(0);
      },
      ExitedWithCode(3), "^kept ours: ");
  EXPECT_TRUE(std::filesystem::exists(scratch.path("file")));
}

TEST(ProcessorLimit, LeavesALimitThatIsSofterAlone) {
  EXPECT_EXIT(
      {
        limit_processor_time(3, 10);
        answer_processor_limit("ours");
        rlimit now = {};
        ::getrlimit(RLIMIT_CPU, &now);
        std::exit(now.rlim_cur == 3 && now.rlim_max == 10 ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

TEST(KnownAnswer, IsPrintedWithTheLimitsLine) {
  const test::Scratch scratch;
  const std::string printed = scratch.path("printed");
  const auto ended = [&](bool known_still) {
    if (std::freopen(printed.c_str(), "w", stdout) == nullptr) std::exit(9);
    const BoundedTime bounded(Seconds(0.2), "ours", "--time-limit");
    std::optional<KnownAnswer> known(std::in_place, "a table\n", "only its end is missing");
    if (!known_still) known.reset();
    compute(kForever);
  };
  EXPECT_EXIT(ended(true), ExitedWithCode(3), "^" + kLine + "; only its end is missing\n$");
  EXPECT_EQ(test::bytes_of_file(printed), "a table\n");
  EXPECT_EXIT(ended(false), ExitedWithCode(3), "^" + kLine + "\n$");
  EXPECT_EQ(test::bytes_of_file(printed), "");
}

}  // namespace
}  // namespace shardwise
