// Pipes in the place of files that a run reads (D11): it ends at once, and never waits for a
// writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "planner/model/hf_config.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using shardwise::test::shardwise_run;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

class Pipe : public testing::Test {
 protected:
  /// What a run says with a pipe where `path` is, for as long as it takes.
  void expect_refused(const std::string& path, std::vector<std::string> arguments) const {
    SCOPED_TRACE(path);
    const std::string aside = path + ".aside";
    const bool there = fs::exists(path);
    if (there) fs::rename(path, aside);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    arguments.insert(arguments.begin(), scratch_.write(plan_));
    const Outcome refused = shardwise_run(arguments);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_THAT(refused.err, HasSubstr(path + ": "));
    EXPECT_THAT(refused.err, HasSubstr("a pipe, not a regular file"));
    fs::remove(path);
    if (there) fs::rename(aside, path);
  }

  Scratch scratch_;
  Plan plan_ = tiny_plan("shardwise", 1, 2, 1);
};

TEST_F(Pipe, InACheckpointIsRefusedAndSkippedByTheLatest) {
  const std::string folder = scratch_.path("checkpoints");
  const std::vector<std::string> data = {"--data", "docs/memory.md", "--checkpoint-dir", folder};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), data.begin(), data.end());
    return more;
  };
  std::vector<std::string> begin = with({"--steps", "2", "--checkpoint-every", "1"});
  begin.insert(begin.begin(), scratch_.write(plan_));
  ASSERT_EQ(shardwise_run(begin).exit_code, 0);
  const std::string last = folder + "/step-00000002";
  for (const char* name : {"/manifest.json", "/rank-00001.safetensors"}) {
    expect_refused(last + name, with({"--steps", "3", "--resume", last}));
  }
  fs::remove(last + "/rank-00000.safetensors");
  ASSERT_EQ(::mkfifo((last + "/rank-00000.safetensors").c_str(), 0600), 0);
  fs::remove(folder + "/run.json");
  ASSERT_EQ(::mkfifo((folder + "/run.json").c_str(), 0600), 0);
  std::vector<std::string> latest = with({"--steps", "2", "--resume", "latest"});
  latest.insert(latest.begin(), scratch_.write(plan_));
  const Outcome rest = shardwise_run(latest);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("skipping " + last + ": " + last +
                                  "/rank-00000.safetensors: a "
                                  "pipe, not a regular file\n"));
  EXPECT_THAT(rest.out, HasSubstr("resuming after step 1"));
}

TEST_F(Pipe, InWeightsIsRefused) {
  plan_.model = *read_model_file("tests/golden/weights/llama/config.json");
  const std::string folder = scratch_.path("weights");
  fs::create_directory(folder);
  for (const auto& file : fs::directory_iterator("tests/golden/weights/llama")) {
    fs::copy(file.path(), fs::path(folder) / file.path().filename());
  }
  const std::string data = scratch_.write_bytes("text", std::string(4000, ' '));
  for (const char* name :
       {"/model-00002-of-00004.safetensors", "/model.safetensors.index.json", "/config.json"}) {
    expect_refused(folder + name, {"--init-from", folder, "--data", data});
  }
}

TEST_F(Pipe, InTheDataIsRefused) {
  const std::string data = scratch_.path("data");
  expect_refused(data, {"--data", data});
  expect_refused(data, {"--data", "docs/memory.md", "--tokenizer", data});
  scratch_.write_bytes("tokens.bin", "");
  expect_refused(scratch_.path("tokens.idx"),
                 {"--data", scratch_.path("tokens"), "--data-format", "megatron"});
}

}  // namespace
}  // namespace shardwise::exec::test
