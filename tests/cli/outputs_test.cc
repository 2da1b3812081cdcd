// What the command writes: links, modes, inputs, standard output, pipes (D7, D12, D13).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;
using test::bytes_of_file;
using test::Scratch;
using testing::HasSubstr;

const std::vector<std::string> kPlan = {"plan",     "--model",   "gpt2",   "--cluster", "laptop",
                                        "--engine", "shardwise", "--gpus", "2"};

std::vector<std::string> followed_by(std::vector<std::string> words,
                                     std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

Outcome bash(const std::string& line) {
  return test::run_program("bash", {"-c", "shardwise=" + test::built("shardwise") + "; " + line});
}

/// A plan.json of gpt2 on two ranks.
std::string plan_in(const Scratch& scratch) {
  const std::string path = scratch.path("p.json");
  EXPECT_EQ(shardwise(followed_by(kPlan, {"-o", path})).exit_code, 0);
  return path;
}

bool is_json(const std::string& text) { return nlohmann::json::accept(text); }

// (D12)
TEST(Outputs, LeaveLinksAndModesAsTheyAre) {
  const Scratch scratch;
  const std::string target = scratch.write_bytes("t", "old");
  ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
  fs::create_symlink("t", scratch.path("l"));
  EXPECT_EQ(shardwise(followed_by(kPlan, {"-o", scratch.path("l")})).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(scratch.path("l")));
  EXPECT_TRUE(is_json(bytes_of_file(target)));
  struct stat facts = {};
  ASSERT_EQ(::stat(target.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

// (D13)
TEST(Outputs, AreNoInputs) {
  const Scratch scratch;
  const std::string plan = plan_in(scratch);
  const std::string before = bytes_of_file(plan);
  fs::create_hard_link(plan, scratch.path("hard.json"));
  const std::vector<std::vector<std::string>> lines = {
      {"simulate", plan, "-o", plan},
      {"simulate", plan, "--trace", scratch.path("hard.json")},
      {"simulate", plan, "--svg", scratch.path("./p.json")}};
  for (const std::vector<std::string>& line : lines) {
    const Outcome outcome = shardwise(line);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("is the same file as the input PLAN"));
    EXPECT_EQ(bytes_of_file(plan), before);
  }
}

TEST(Outputs, AreNoModelClusterOrTable) {
  const Scratch scratch;
  const std::string model =
      scratch.write_bytes("model.json", bytes_of_file("configs/models/gpt2.json"));
  const Outcome plan = shardwise({"plan", "--model", model, "--cluster", "laptop", "--engine",
                                  "shardwise", "--gpus", "1", "-o", model});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_THAT(plan.err, HasSubstr("--output: " + model + " is the same file as the input --model"));
  EXPECT_EQ(bytes_of_file(model), bytes_of_file("configs/models/gpt2.json"));
  // By the name in the catalogue, too.
  fs::create_symlink(fs::absolute("configs/models/gpt2.json"), scratch.path("link"));
  EXPECT_EQ(shardwise(followed_by(kPlan, {"-o", scratch.path("link")})).exit_code, 2);
  const std::string table = scratch.write_bytes("t.csv", "dtype,m,n,k,latency_ms\n");
  const Outcome fitted = shardwise({"fit", "--gpu", "h100-sxm", "--gemm", table, "-o", table});
  EXPECT_EQ(fitted.exit_code, 2);
  EXPECT_THAT(fitted.err, HasSubstr("is the same file as the input --gemm"));
}

// A plan whose sizes and lists disagree gave an answer of neither.
TEST(Plans, AreRefusedWhereTheirModelContradictsItself) {
  const Scratch scratch;
  std::string text = bytes_of_file(plan_in(scratch));
  const std::size_t at = text.find("\"vocab_size\": ");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 14, "9");
  const std::string path = scratch.write_bytes("edited.json", text);
  const Outcome refused = shardwise({"simulate", path});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::ContainsRegex("edited.json:[0-9]+:[0-9]+: "
                                                  "/model/kinds/0/parameters/0/shape/0: [0-9]+ "
                                                  "contradicts vocab_size, which is 9"));
}

// The trace was taken for the groups of the other one's folder.
TEST(Outputs, AreNoFilesOfAFolderThatTheCommandWrites) {
  const Scratch scratch;
  const std::string plan = plan_in(scratch);
  for (const char* const name : {"/comm_groups.json", "/./step.0.et"}) {
    const std::string trace = scratch.path("c") + name;
    const Outcome refused =
        shardwise({"simulate", plan, "--chakra", scratch.path("c"), "--trace", trace});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err,
                HasSubstr("--trace: " + trace + " is a name of the files of --chakra"));
  }
}

TEST(Outputs, ToStandardOutputAreAllOfIt) {
  const Outcome plan = shardwise(followed_by(kPlan, {"-o", "-"}));
  EXPECT_EQ(plan.exit_code, 0);
  ASSERT_TRUE(is_json(plan.out)) << plan.out.substr(0, 200);
  EXPECT_EQ(nlohmann::json::parse(plan.out)["schema"], "shardwise.plan/1");
  EXPECT_THAT(plan.err, HasSubstr("wrote -"));  // what is printed else
  EXPECT_FALSE(fs::exists("-"));
  const Scratch scratch;
  const std::string file = plan_in(scratch);
  for (const char* flag : {"-o", "--trace"}) {
    const Outcome outcome = shardwise({"simulate", file, flag, "/dev/stdout"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(is_json(outcome.out)) << outcome.out.substr(0, 200);
  }
  EXPECT_EQ(bash("$shardwise simulate " + file + " -o - > /dev/full").exit_code, 3);
  EXPECT_EQ(bash("$shardwise simulate " + file + " -o - >&-").exit_code, 3);
}

TEST(Outputs, ToStandardOutputAreAlone) {
  const Scratch scratch;
  const std::string plan = plan_in(scratch);
  const Outcome both = shardwise({"simulate", plan, "-o", "-", "--json"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--output: - is the same file as --json"));
  EXPECT_EQ(shardwise({"simulate", plan, "-o", "-", "--trace", "-"}).exit_code, 2);
  const Outcome mixed =
      bash("$shardwise simulate " + plan + " -o " + scratch.path("r") + " > " + scratch.path("r"));
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("is the same file as standard output"));
}

TEST(Outputs, GoThroughPipesAndDevices) {
  const Scratch scratch;
  const std::string plan = plan_in(scratch);
  const std::string copy = scratch.path("copy.json");
  const Outcome substituted =
      bash("$shardwise simulate " + plan + " -o >(cat > " + copy + "; echo done >&2) && wait");
  EXPECT_EQ(substituted.exit_code, 0) << substituted.err;
  const Outcome named = bash("cd " + scratch.folder().string() + "; mkfifo f; cat f > g & " +
                             "$shardwise simulate p.json -o f; code=$?; wait; exit $code");
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_TRUE(is_json(bytes_of_file(scratch.path("g"))));
  EXPECT_EQ(shardwise({"simulate", plan, "-o", "/dev/null", "--trace", "/dev/null"}).exit_code, 0);
  EXPECT_EQ(shardwise({"simulate", plan, "-o", "/dev/full"}).exit_code, 3);
}

// (D7) Each writer has pid 1 in a name space of its own.
TEST(Outputs, OfTwoContainersAreEachWhole) {
  const Outcome possible = bash("unshare -p -f --mount-proc true");
  if (possible.exit_code != 0) GTEST_SKIP() << "no pid name spaces here: " << possible.err;
  const Scratch scratch;
  const std::string trace = scratch.path("ns.json");
  const auto writer = [&](const std::string& model) {
    return "unshare -p -f --mount-proc $shardwise simulate --cluster dgx-h100 --engine fsdp2 "
           "--granularity kernel --gpus 8 --global-batch-size 8 --model " +
           model + " --trace " + trace + " > /dev/null";
  };
  for (int i = 0; i < 3; ++i) {
    const Outcome both = bash(writer("gpt2") + " & " + writer("gpt2-xl") +
                              "; second=$?; wait $!; exit $(($? + second))");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_TRUE(is_json(bytes_of_file(trace)));
  }
  fs::remove(trace);
  EXPECT_TRUE(fs::is_empty(scratch.folder()));
}

}  // namespace
}  // namespace shardwise::cli
