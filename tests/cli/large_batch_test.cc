#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

// Each of these once took minutes and gigabytes, or ended in std::bad_alloc (D2). What they take
// now is that of a batch of 8: planner/cost/slot_loops_test.cc counts it.
TEST(LargeBatch, IsEstimated) {
  for (const char* batch : {"800000", "8000000"}) {
    const Outcome outcome =
        shardwise({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--engine",
                   "megatron_ddp", "--global-batch-size", batch});
    EXPECT_LE(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(" a step\n"));
  }
}

TEST(LargeBatch, IsPlannedForShortSequences) {
  for (const char* sequence : {"64", "8"}) {
    const Outcome outcome = shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                       "--engine", "megatron_ddp", "--sequence-length", sequence});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const Outcome t5 = shardwise({"plan", "--model", "t5-11b", "--cluster", "oci-a100", "--gpus",
                                "16", "--engine", "megatron_fsdp", "--sequence-length", "128"});
  EXPECT_LE(t5.exit_code, 1) << t5.err;
}

// A list longer than there are layouts to list (F5).
TEST(LongList, IsSearchedInTheFullSpace) {
  const Outcome outcome =
      shardwise({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", "--engine",
                 "megatron_ddp", "--space", "full", "--top", "10000"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace shardwise::cli
