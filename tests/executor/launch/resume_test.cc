#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run of the built program with its checkpoints in the folder of the test.
class Resume : public testing::Test {
 protected:
  Outcome run(const Plan& plan, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {scratch_.write(plan), "--data", "docs/memory.md",
                                         "--learning-rate", "0.01", "--metrics", metrics()});
    return run_program(built("shardwise-run"), arguments);
  }
  std::string metrics() const { return scratch_.path("metrics.jsonl"); }
  std::string folder() const { return scratch_.path("checkpoints"); }

  Scratch scratch_;
  Plan plan_ = tiny_plan("shardwise", 3, 2, 1);
};

TEST_F(Resume, ContinuesTheCurveBitForBit) {
  ASSERT_EQ(run(plan_, {"--steps", "7"}).exit_code, 0);
  const std::vector<std::string> whole = losses_of(metrics());
  ASSERT_EQ(run(plan_, {"--steps", "4", "--checkpoint-dir", folder(), "--seed", "1234"}).exit_code,
            0);
  // The checkpoint's seed is the run's, whatever the default.
  const Outcome rest = run(tiny_plan("fsdp1", 3, 2, 1),
                           {"--steps", "7", "--checkpoint-dir", folder(), "--checkpoint-every", "2",
                            "--resume", "latest", "--weight-decay", "0.1"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("goes on after step 4, written by shardwise ZeRO-3, dp_shard 2"));
  EXPECT_THAT(rest.out, Not(HasSubstr(", was ")));
  EXPECT_EQ(losses_of(metrics()), std::vector<std::string>(whole.begin() + 4, whole.end()));
  const Outcome other = run(plan_, {"--steps", "8", "--resume", folder(), "--clip-norm", "0.5"});
  EXPECT_THAT(other.out, HasSubstr("goes on after step 7, written by fsdp1"));
  EXPECT_THAT(other.out, HasSubstr("clip_norm 0.5, was 1\n"));
}

TEST_F(Resume, RefusesFlagsThatDoNotGoWithTheCheckpoint) {
  const Outcome nothing = run(plan_, {"--checkpoint-dir", folder(), "--resume", "latest"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--resume: " + folder() + " has no complete checkpoint"));
  EXPECT_EQ(run(plan_, {"--resume", "latest"}).exit_code, 2);
  EXPECT_EQ(run(plan_, {"--checkpoint-every", "2"}).exit_code, 2);
  ASSERT_EQ(run(plan_, {"--steps", "2", "--checkpoint-dir", folder()}).exit_code, 0);
  const Outcome wrong = run(plan_, {"--steps", "2", "--seed", "5", "--resume", folder()});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--seed: 5, the checkpoint has 1234\n    leave --seed out"));
  EXPECT_THAT(wrong.err, HasSubstr("--steps: 2, the checkpoint has trained 2"));
  Plan wider = tiny_plan("shardwise", 3, 2, 1);
  wider.model.name = "wider";
  std::erase_if(wider.model.layers, [&](int kind) { return kind == wider.model.layers[1]; });
  wider.model.layers.insert(wider.model.layers.begin() + 1, plan_.model.layers[1]);
  const Outcome other = run(wider, {"--steps", "3", "--resume", folder()});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("/tensors/model.layers.1."));
  EXPECT_THAT(other.err, HasSubstr("is extra, the plan's model has none such"));
}

TEST_F(Resume, RefusesAnAlteredCheckpointAndNamesTheTensor) {
  ASSERT_EQ(run(plan_, {"--steps", "2", "--checkpoint-dir", folder()}).exit_code, 0);
  const std::string file = "checkpoints/step-00000002/rank-00001.safetensors";
  std::string bytes = bytes_of_file(scratch_.path(file));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch_.write_bytes(file, bytes);
  const Outcome refused = run(plan_, {"--steps", "3", "--resume", folder()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr("rank-00001.safetensors: /second_moment/"));
  EXPECT_THAT(refused.err, HasSubstr("was altered: its checksum differs"));
}

}  // namespace
}  // namespace shardwise::exec::test
