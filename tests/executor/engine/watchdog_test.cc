#include "executor/comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;

Layout two_ranks() {
  Layout layout;
  layout.zero_stage = 3;
  layout.dp_shard = 2;
  return layout;
}

/// A patience so long that a busy machine's honest work ends within it.
constexpr milliseconds kLong{60'000};

/// What a run says whose rank 1 stays in the first pass of the step until it has failed.
std::string message_of_hung_run(milliseconds patience, milliseconds watched) {
  const Plan plan = laptop_plan("shardwise", two_ranks(), 1, true);
  const TokenSequences data = *TokenSequences::cut(TokenStream(std::string(2000, 'a')),
                                                   plan.job.sequence_length, 257, 3, "text");
  AbortSignal abort;
  const Watchdog watchdog(abort, watched, [](const std::string&) {});
  CpuDevice device;
  std::vector<Arena> arenas(2);
  try {
    run_ranks(
        2, abort,
        [&](World& world) {
          LayerKernels kernels = stand_in_kernels(plan);
          if (world.rank() == 1) {
            kernels.fill_tables = [&](std::byte*, const Issue&) {
              while (!abort.raised()) std::this_thread::yield();
            };
          }
          Trainer trainer(plan, world, device, arenas[static_cast<std::size_t>(world.rank())],
                          abort, {}, kernels);
          trainer.initialise();
          trainer.step(data);
        },
        patience);
  } catch (const IoError& broken) {
    return broken.what();
  }
  return "";
}

/// The same, of a run with so much patience that rank 1 was in its pass, and rank 0 as far as it
/// can get, when it ended: on a busy machine they are not there at once.
std::string message_where_they_hang(milliseconds patience,
                                    const std::function<std::string(milliseconds patience)>& run) {
  for (;; patience *= 2) {
    std::string message = run(patience);
    const bool there =
        message.find("fwd.layer0.mb0 runs since") != std::string::npos &&
        message.find("gather.layer3.mb0 (all_gather over dp_shard x cp) runs") != std::string::npos;
    if (there || patience > kLong) return message;
  }
}

// Rank 1 may gather ahead of its pass as far as the program lets it; rank 0 waits for the next
// unit.
// Seconds are those of a busy machine, so any.
TEST(AbortSignal, NamesTheRankThatHangsAndWhatEveryRankDoes) {
  EXPECT_THAT(
      message_where_they_hang(milliseconds(200),
                              [](milliseconds patience) {
                                return message_of_hung_run(patience, std::chrono::hours(1));
                              }),
      AllOf(ContainsRegex("rank 0 waited [0-9.]+ s in all_gather for rank 1\nrank 0\n  compute: "),
            ContainsRegex("\n  all_gather: gather.layer3.mb0 \\(all_gather over dp_shard x cp\\) "
                          "runs since [0-9.]+ s\n"),
            // The last eight of all streams, the latest first.
            ContainsRegex("\n  ended, s ago: [a-z0-9.]+[^,]* [0-9.]+, [^\n]*"
                          "gather.layer2.mb0 \\(all_gather over dp_shard x cp\\) [0-9.]+, [^\n]*"
                          "gather.layer1.mb0 \\(all_gather over dp_shard x cp\\) [0-9.]+"),
            ContainsRegex("\nrank 1\n  compute: fwd.layer0.mb0 runs since [0-9]")));
}

TEST(Watchdog, FindsARankWhoseOperationsNeitherBeginNorEnd) {
  EXPECT_THAT(message_where_they_hang(milliseconds(1),
                                      [](milliseconds patience) {
                                        return message_of_hung_run(std::chrono::hours(1), patience);
                                      }),
              AllOf(ContainsRegex(" hangs: none of its operations began or ended for [1-9]"),
                    ContainsRegex("\nrank 1\n  compute: fwd.layer0.mb0 runs since [0-9]")));
}

TEST(Watchdog, EndsAProcessWhoseRanksStayAfterAFailure) {
  AbortSignal abort;
  std::atomic<bool> ended = false;
  const Watchdog watchdog(
      abort, std::chrono::hours(1),
      [&](const std::string& message) {
        EXPECT_EQ(message, "out of ideas");
        ended = true;
        ended.notify_all();
      },
      milliseconds(1));
  abort.raise("out of ideas");
  ended.wait(false);
}

}  // namespace
}  // namespace shardwise::exec::test
