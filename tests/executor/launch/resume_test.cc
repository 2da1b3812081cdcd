#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::shardwise_run;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A run of the built program with its checkpoints in the folder of the test.
class Resume : public testing::Test {
 protected:
  Outcome run(const Plan& plan, std::vector<std::string> arguments) const {
    if (std::ranges::find(arguments, "--data") == arguments.end()) {
      arguments.insert(arguments.end(), {"--data", "docs/memory.md"});
    }
    arguments.insert(arguments.begin(),
                     {scratch_.write(plan), "--learning-rate", "0.01", "--metrics", metrics()});
    return shardwise_run(arguments);
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
  EXPECT_THAT(rest.out, HasSubstr("written by shardwise ZeRO-3, dp_shard 2"));
  EXPECT_THAT(rest.out, ContainsRegex("resuming after step 4 of run [0-9a-f]{8}, written by"));
  EXPECT_THAT(rest.out, Not(HasSubstr(", was ")));
  EXPECT_EQ(losses_of(metrics()), whole);
  const Outcome other = run(plan_, {"--steps", "8", "--resume", folder(), "--clip-norm", "0.5"});
  EXPECT_THAT(other.out,
              ContainsRegex("resuming after step 7 of run [0-9a-f]{8}, written by fsdp1"));
  EXPECT_THAT(other.out, HasSubstr("clip_norm 0.5, was 1\n"));
}

// Two steps of the file are after the checkpoint, and the last line was cut short.
TEST_F(Resume, GoesOnInTheMetricsFileAfterTheCheckpoint) {
  ASSERT_EQ(run(plan_, {"--steps", "5"}).exit_code, 0);
  const std::string whole = bytes_of_file(metrics());
  ASSERT_EQ(run(plan_, {"--steps", "3", "--checkpoint-dir", folder()}).exit_code, 0);
  scratch_.write_bytes("metrics.jsonl", whole.substr(0, whole.size() - 9));
  ASSERT_EQ(run(plan_, {"--steps", "4", "--resume", folder()}).exit_code, 0);
  const std::string text = bytes_of_file(metrics());
  EXPECT_EQ(std::ranges::count(text, '\n'), 5);
  const std::size_t third = whole.find("{\"step\":3");
  EXPECT_EQ(text.substr(0, third), whole.substr(0, third));
  EXPECT_EQ(losses_of(metrics()).size(), 4U);
}

TEST_F(Resume, RefusesOtherDataUnlessItIsMeant) {
  ASSERT_EQ(run(plan_, {"--steps", "2", "--checkpoint-dir", folder()}).exit_code, 0);
  const auto resumed = [&](const Plan& plan, std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "3", "--resume", folder()});
    return run(plan, more);
  };
  const std::string copy = scratch_.write_bytes("copy.txt", bytes_of_file("docs/memory.md"));
  EXPECT_EQ(resumed(plan_, {"--data", copy}).exit_code, 0);  // the same tokens elsewhere
  std::string altered = bytes_of_file("docs/memory.md");
  altered[100] = altered[100] == 'x' ? 'y' : 'x';
  const std::string other = scratch_.write_bytes("other.txt", altered);
  const Outcome refused = resumed(plan_, {"--data", other});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--data: " + other + " has "));
  EXPECT_THAT(refused.err, HasSubstr("of docs/memory.md\n    use the data of that run, or add "
                                     "--resume-on-other-data"));
  EXPECT_EQ(resumed(plan_, {"--data", other, "--resume-on-other-data"}).exit_code, 0);
  Plan longer = plan_;
  longer.job.sequence_length = 64;
  longer.job.global_batch_size = 4;
  const Outcome cut = resumed(longer, {});
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_THAT(cut.err, HasSubstr("/job/sequence_length: 64, the checkpoint's run had 32"));
  EXPECT_THAT(cut.err, HasSubstr("/job/global_batch_size: 4, the checkpoint's run had 2"));
  EXPECT_EQ(resumed(plan_, {"--seed", "5"}).exit_code, 2);
  EXPECT_EQ(resumed(plan_, {"--seed", "5", "--resume-on-other-data"}).exit_code, 0);
}

TEST_F(Resume, RefusesAnotherTokenizer) {
  Plan plan = plan_;
  plan.model = shardwise::test::llama(2, 32, 88, 4, 2, 512);
  plan.model.model_type = "llama";
  ASSERT_EQ(run(plan, {"--steps", "2", "--checkpoint-dir", folder()}).exit_code, 0);
  const Outcome refused = run(plan, {"--steps", "3", "--resume", folder(), "--tokenizer",
                                     "tests/golden/tokenizers/gpt2.json"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              ContainsRegex("--tokenizer: SHA-256 [0-9a-f]+, the checkpoint's run had none"));
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
  EXPECT_THAT(wrong.err, HasSubstr("--seed: 5, the checkpoint has 1234\n    leave --seed out, or "
                                   "add --resume-on-other-data"));
  EXPECT_THAT(wrong.err, HasSubstr("--steps: 2, the checkpoint has trained 2"));
  Plan shorter = plan_;
  shorter.model = shardwise::test::llama(1, 32, 88, 4, 2, 256);
  shorter.model.model_type = "llama";
  const Outcome other = run(shorter, {"--steps", "3", "--resume", folder()});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("/tensors/model.layers.1."));
  EXPECT_THAT(other.err, HasSubstr("is extra, the plan's model does not have it"));
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
