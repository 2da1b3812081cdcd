#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "planner/spec/reader.h"
#include "planner/spec/table.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> tiny_step(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {
      "simulate", "--model",      "gpt2", "--cluster",           "dgx-h100", "--engine",
      "fsdp2",    "--zero-stage", "3",    "--global-batch-size", "16"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

std::string written(const char* name) { return testing::TempDir() + "simulate_test_" + name; }

TEST(Simulate, FitsATerminalOf80Columns) {
  const Outcome outcome = shardwise(tiny_step({}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Simulate, PrintsTheSameTwice) {
  EXPECT_EQ(shardwise(tiny_step({"--json"})).out, shardwise(tiny_step({"--json"})).out);
}

TEST(Simulate, WritesATraceOfCompleteEvents) {
  const std::string trace = written("trace.json");
  const Outcome outcome = shardwise(tiny_step({"--trace", trace}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<JsonValue> json = read_json(trace);
  ASSERT_TRUE(json.ok()) << to_string(json.problems());
  const JsonValue* events = json->find("traceEvents");
  ASSERT_NE(events, nullptr);
  EXPECT_GT(events->elements.size(), 100U);
  std::filesystem::remove(trace);
}

TEST(Simulate, RefusesNoiseThatNoTrialWouldSee) {
  for (const char* flag : {"--jitter", "--slow-nodes", "--slow-factor", "--mtbf-hours-per-gpu"}) {
    const Outcome outcome = shardwise(tiny_step({flag, "1"}));
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_THAT(outcome.err, HasSubstr(flag));
    EXPECT_THAT(outcome.err, HasSubstr("--trials"));
  }
}

TEST(Simulate, SetsTwoEnginesSideBySideInATerminalOf80Columns) {
  const Outcome outcome = shardwise(tiny_step({"--versus", "megatron_fsdp"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"peak reserved", "kernels", "copies in", "prefetch", "user buffers",
                           "with equal kernels"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Simulate, RefusesAnEngineThatDoesNotExistOrCannotRunTheLayout) {
  for (const char* engine : {"no_such_engine", "megatron_ddp"}) {
    const Outcome outcome = shardwise(tiny_step({"--versus", engine}));
    EXPECT_EQ(outcome.exit_code, 2) << engine;
    EXPECT_THAT(outcome.err, HasSubstr(engine));
  }
}

TEST(Simulate, ComparesFullShardWithHybridAsTheClusterGrows) {
  const Outcome outcome = shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100",
                                     "--engine", "fsdp2", "--zero-stage", "3", "--growth", "32"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // A line each for 8, 16 and 32 GPUs below the two of the heading; equal on one node.
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 5);
  EXPECT_THAT(outcome.out, HasSubstr("+0.0 %"));
}

TEST(Simulate, TakesAdditionOutOfTheSwitches) {
  const auto step = [](const char* in_network) {
    return shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100-sharp", "--gpus", "16",
                      "--engine", "megatron_ddp", "--zero-stage", "0", "--in-network", in_network})
        .out;
  };
  EXPECT_NE(step("on"), step("off"));
}

TEST(Simulate, RefusesMoreFailedLinksThanNodesCanLose) {
  const Outcome outcome = shardwise(tiny_step({"--trials", "1", "--failed-links", "8"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--failed-links: 8 links cannot fail"));
}

TEST(Simulate, DrawsAPicture) {
  const std::string svg = written("step.svg");
  const Outcome outcome = shardwise(tiny_step({"--svg", svg}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(svg);
  std::string first;
  std::getline(in, first);
  EXPECT_THAT(first, HasSubstr("<svg "));
  std::filesystem::remove(svg);
}

TEST(Simulate, SaysWhenThereIsNoPlan) {
  const Outcome outcome = shardwise({"simulate", "no_such_plan.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no_such_plan.json: no such file"));
}

TEST(Simulate, LeavesNoReportWhereNoneCanBeWritten) {
  const Outcome outcome = shardwise(tiny_step({"-o", "/dev/full"}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written"));
}

TEST(Compare, FindsNoDifferenceBetweenAReportAndItself) {
  const std::string report = written("report.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", report})).exit_code, 0);
  const Outcome outcome = shardwise({"compare", report, report, "--tolerance", "0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("+0.0 % of A's time"));
  std::filesystem::remove(report);
}

TEST(Compare, ExitsWithOneBeyondItsTolerance) {
  const std::string one = written("one.json");
  const std::string longer = written("longer.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", one})).exit_code, 0);
  ASSERT_EQ(shardwise(tiny_step({"-o", longer, "--sequence-length", "8192"})).exit_code, 0);
  EXPECT_EQ(shardwise({"compare", one, longer, "--tolerance", "0.01"}).exit_code, 1);
  std::filesystem::remove(one);
  std::filesystem::remove(longer);
}

TEST(Compare, NamesEveryFileThatIsMissing) {
  const Outcome outcome = shardwise({"compare", "no_a.json", "no_b.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no_a.json"));
  EXPECT_THAT(outcome.err, HasSubstr("no_b.json"));
}

}  // namespace
}  // namespace shardwise::cli
