// The rows of a chunk of the loss that a written plan has.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

/// Of GPT-2 on one H100 under our engine, by chunks, with what else is asked.
std::int64_t rows_of(std::vector<std::string> more, const std::string& cluster = "dgx-h100") {
  const test::Scratch scratch;
  const std::string file = scratch.path("plan.json");
  std::vector<std::string> asked = {"plan",
                                    "--model",
                                    "pythia-160m",
                                    "--cluster",
                                    cluster,
                                    "--gpus",
                                    "1",
                                    "--engine",
                                    "shardwise",
                                    "--loss",
                                    "chunked",
                                    "--sequence-length",
                                    "8192",
                                    "--lock",
                                    "micro_batch_size=1",
                                    "--lock",
                                    "recompute=none",
                                    "--precision",
                                    "bf16",
                                    "-o",
                                    file,
                                    "--kernels",
                                    "planned",
                                    "--global-batch-size",
                                    "512"};
  asked.insert(asked.end(), more.begin(), more.end());
  const Outcome outcome = shardwise(asked);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  const Result<Plan> plan = read_plan(file);
  EXPECT_TRUE(plan.ok());
  return plan ? plan->job.loss_chunk_rows : -1;
}

// Its steps take 16.1, 16.2 and 16.6 s with 4096, 2048 and 1024 rows, and 6.22, 6.02 and 5.92 GiB
// at most: a layout that fits with 1024 alone is found too.
TEST(PlanVerb, WritesTheRowsOfTheFastestLossThatFits) {
  EXPECT_EQ(rows_of({}), 4096);
  EXPECT_EQ(rows_of({"--max-memory", "6.1GiB"}), 2048);
  EXPECT_EQ(rows_of({"--max-memory", "5.95GiB"}), 1024);
}

TEST(PlanVerb, WritesTheRowsThatAreStatedAndTheRuleOnCpus) {
  EXPECT_EQ(rows_of({"--loss-chunk-rows", "512"}), 512);
  EXPECT_EQ(rows_of({"--loss-chunk-rows", "0"}), 0);
  EXPECT_EQ(rows_of({}, "laptop"), 0);
}

}  // namespace
}  // namespace shardwise::cli
