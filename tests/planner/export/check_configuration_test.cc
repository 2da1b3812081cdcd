// What is wrong with a configuration, all of it at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/framework/framework_reader.h"

namespace shardwise {
namespace {

using testing::ElementsAre;

/// The settings that problems or findings stand at.
std::vector<std::string> wrong_in(const std::string& framework, const JobFile& file) {
  const Result<Configuration> job = read_job({file});
  EXPECT_TRUE(job.ok()) << to_string(job.problems());
  const auto found = check_configuration(*load_framework(framework, "--from"), *job, 16, {});
  std::vector<std::string> paths;
  if (!found) {
    for (const Diagnostic& each : found.problems()) paths.push_back(each.path);
  } else {
    for (const Finding& each : *found) paths.push_back(each.what.path);
  }
  return paths;
}

TEST(Checks, SayWhatIsRefusedBesideAValueOfAWrongKind) {
  EXPECT_THAT(
      wrong_in("megatron-lm", {"a.args",
                               "--num-layers two --micro-batch-size 1 --seq-length 2k\n"
                               "--bf16 --fp16 --lr-decay-style cosin --no-such-flag\n"}),
      ElementsAre("--num-layers", "--seq-length", "--fp16", "--lr-decay-style", "--no-such-flag"));
  EXPECT_THAT(wrong_in("deepspeed", {"ds_config.json",
                                     R"({"train_batch_size": "x", "bf16": {"enabled": true},
 "fp16": {"enabled": true}, "zero_optimization": {"stage": 3, "no_such_key": 1}})"}),
              ElementsAre("/train_batch_size", "/fp16/enabled", "/zero_optimization/no_such_key"));
}

// Without a degree that is wrong nobody knows whether sequence parallelism has ranks to run on.
TEST(Checks, SayNothingOfRulesThatAskForAWrongValue) {
  EXPECT_THAT(wrong_in("megatron-lm", {"a.args",
                                       "--num-layers 8 --micro-batch-size 1 --sequence-parallel\n"
                                       "--tensor-model-parallel-size two\n"}),
              ElementsAre("--tensor-model-parallel-size"));
}

}  // namespace
}  // namespace shardwise
