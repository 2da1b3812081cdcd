#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/table.h"
#include "tests/cli/command.h"
#include "tests/cli/tiny_step.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;

std::string simulate_output(const char* name) {
  return testing::TempDir() + "simulate_test_" + name;
}

TEST(Simulate, FitsATerminalOf80Columns) {
  const Outcome outcome = shardwise(tiny_step({}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Simulate, GivesForwardAndBackwardTheirPartsOfATimelineWhoseColumnsHoldBoth) {
  const Outcome outcome = shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100",
                                     "--gpus", "2", "--engine", "megatron_ddp", "--pp", "2",
                                     "--micro-batch-size", "1", "--global-batch-size", "512"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line) && !line.starts_with("stage 0 compute")) continue;
  const auto forward = std::count(line.begin(), line.end(), 'F');
  const auto backward = std::count(line.begin(), line.end(), 'B');
  EXPECT_GT(forward, 10) << line;
  EXPECT_GT(backward, forward) << line;
}

/// Columns of the first stage's compute stream in which something runs.
std::ptrdiff_t busy_columns(const std::string& line) {
  constexpr std::size_t kLabel = 19;
  return std::ranges::count_if(line.substr(kLabel), [](char c) { return c != '.'; });
}

// Also where it waits for most of every column, as of 64 GPUs with short sequences.
TEST(Simulate, DrawsAsMuchIdleTimeAsThereIs) {
  const std::vector<std::vector<std::string>> jobs = {
      {"--gpus", "64", "--cluster", "aws-p4d", "--engine", "fsdp2", "--zero-stage", "3",
       "--sequence-length", "512"},
      {"--gpus", "8", "--cluster", "dgx-h100", "--pp", "4", "--global-batch-size", "8"},
      {"--gpus", "8", "--cluster", "dgx-h100", "--engine", "fsdp2", "--zero-stage", "3"}};
  for (std::vector<std::string> job : jobs) {
    job.insert(job.begin(), {"simulate", "--model", "llama-3.1-8b"});
    const Outcome outcome = shardwise(job);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    job.emplace_back("--json");
    const auto report = nlohmann::json::parse(shardwise(job).out);
    const double share = report["timeline"]["stages"][0]["computing_s"].get<double>() /
                         report["step_time_s"].get<double>();
    const std::size_t at = outcome.out.find("stage 0 compute");
    const std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
    const auto columns = static_cast<double>(line.size() - 19);
    EXPECT_NEAR(static_cast<double>(busy_columns(line)), share * columns, 2) << line;
  }
}

TEST(Simulate, PrintsTheSameTwice) {
  EXPECT_EQ(shardwise(tiny_step({"--json"})).out, shardwise(tiny_step({"--json"})).out);
}

TEST(Simulate, WritesATraceOfCompleteEvents) {
  const std::string trace = simulate_output("trace.json");
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
  for (const char* flag : {"--jitter", "--slow-nodes", "--failed-links", "--mtbf-hours-per-gpu"}) {
    const Outcome outcome = shardwise(tiny_step({flag, "1"}));
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_THAT(outcome.err, HasSubstr(flag));
    EXPECT_THAT(outcome.err, HasSubstr("--trials"));
  }
}

TEST(Simulate, RefusesNoTrials) {
  const Outcome outcome = shardwise(tiny_step({"--trials", "0", "--jitter", "0.1"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--trials: 0 is not an integer from 1 to 100000"));
}

TEST(Simulate, TellsWhatIsLostToAnAxisFromWhatIsExposed) {
  const Outcome outcome = shardwise(tiny_step({"--long"}));
  EXPECT_THAT(outcome.out, HasSubstr("lost to data parallelism"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("data parallel, exposed")));
  EXPECT_THAT(outcome.out, HasSubstr("  exposed: communication while nothing computes. lost:"));
}

TEST(Simulate, RefusesNoiseThatChangesNothing) {
  const Outcome slow = shardwise(tiny_step({"--trials", "2", "--slow-nodes", "1"}));
  EXPECT_EQ(slow.exit_code, 2);
  EXPECT_THAT(slow.err, HasSubstr("--slow-factor"));
  const Outcome never = shardwise(tiny_step({"--trials", "2", "--mtbf-hours-per-gpu", "0"}));
  EXPECT_EQ(never.exit_code, 2);
  EXPECT_THAT(never.err, HasSubstr("--mtbf-hours-per-gpu: 0 is not a number from 0.001"));
}

TEST(Simulate, ListsTheAssumptionsThatItCounts) {
  const std::string report = shardwise(tiny_step({"--json"})).out;
  const Outcome outcome = shardwise(tiny_step({"--explain"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::size_t at = outcome.out.find("\nAssumptions\n");
  ASSERT_NE(at, std::string::npos) << outcome.out;
  const std::size_t count = nlohmann::json::parse(report)["assumptions"].size();
  EXPECT_THAT(outcome.out.substr(0, at),
              HasSubstr(std::to_string(count) + " assumptions behind these numbers"));
  std::istringstream lines(outcome.out.substr(at));
  std::size_t listed = 0;  // each begins two columns in, what follows it further
  for (std::string line; std::getline(lines, line);) {
    listed += static_cast<std::size_t>(line.starts_with("  ") && !line.starts_with("   "));
    EXPECT_LE(display_width(line), 80U) << line;
  }
  EXPECT_EQ(listed, count);
}

TEST(Simulate, ComparesWithAProfilersTrace) {
  const Outcome outcome = shardwise(tiny_step({"--import", "tests/golden/profiler_trace.json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 steps of 960 us to 1.00 ms, median 960 us"));
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 of 8, NVIDIA H100"));
  EXPECT_THAT(outcome.out, HasSubstr("1 event of kind mtia_ccp_events left out"));
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Simulate, ComparesFullShardWithHybridAsTheClusterGrows) {
  const Outcome outcome = shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100",
                                     "--engine", "fsdp2", "--zero-stage", "3", "--growth", "32"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // A line each for 8, 16 and 32 GPUs below the five of the heading; equal on one node.
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 8);
  EXPECT_THAT(outcome.out, HasSubstr("+0.0 %"));
}

TEST(Simulate, SaysOnHowManyGpusAGrowingClusterDoesNotFit) {
  const Outcome outcome =
      shardwise({"simulate", "--model", "llama-3-70b", "--cluster", "dgx-h100", "--engine", "fsdp2",
                 "--zero-stage", "3", "--sequence-length", "2048", "--growth", "16"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Does not fit: hybrid on 8, 16 GPUs"));
}

TEST(Simulate, RefusesToGrowToLessThanANode) {
  const Outcome outcome = shardwise(tiny_step({"--growth", "4"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--growth: 4 GPUs are fewer than a node's"));
}

// A layout that does not fit is not simulated, and the cheapest change is said (first hour, 3).
TEST(Simulate, StopsWithTheCheapestChangeWhereALayoutDoesNotFit) {
  std::vector<std::string> job = {
      "simulate", "--model",      "llama-3.1-8b", "--cluster", "dgx-h100",
      "--engine", "megatron_ddp", "--zero-stage", "0",         "--global-batch-size",
      "8"};
  const Outcome outcome = shardwise(job);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("Does not fit: "));
  EXPECT_THAT(outcome.out, HasSubstr("Cheapest change: "));
  EXPECT_THAT(outcome.out, HasSubstr("--ignore-memory"));
  std::vector<std::string> json = job;
  json.emplace_back("--json");
  const Outcome facts = shardwise(json);
  EXPECT_EQ(facts.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(facts.out).at("verdict").at("fit"), "does_not_fit");
  job.emplace_back("--ignore-memory");
  const Outcome all_the_same = shardwise(job);
  EXPECT_EQ(all_the_same.exit_code, 0) << all_the_same.err;
  EXPECT_THAT(all_the_same.out, HasSubstr("Does not fit"));
}

// Without a flag of a layout, plan's best is simulated.
TEST(Simulate, TakesTheBestLayoutOfPlan) {
  const std::vector<std::string> job = {
      "--model",  "gpt2-xl",      "--cluster",           "dgx-h100",
      "--engine", "megatron_ddp", "--global-batch-size", "64"};
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, job.begin(), job.end());
    const Outcome outcome = shardwise(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const auto best = nlohmann::json::parse(ask({"plan", "--json"})).at("best").at(0);
  const auto report = nlohmann::json::parse(ask({"simulate", "--json"}));
  EXPECT_EQ(report.at("layout"), best.at("layout"));
  EXPECT_EQ(report.at("step_time_s"), best.at("simulated_step_time_s"));
  EXPECT_THAT(ask({"simulate"}), HasSubstr("assumed: the best layout of shardwise plan"));
}

TEST(Simulate, ExitsWithOneWhereNoLayoutFits) {
  const Outcome outcome = shardwise({"simulate", "--model", "llama-3.1-405b", "--cluster",
                                     "dgx-h100", "--engine", "megatron_ddp"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("Nothing fits: "));
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
  EXPECT_THAT(outcome.err, HasSubstr("--failed-links: 8 links, but none can fail"));
}

TEST(Simulate, RefusesFailedLinksThatNothingWouldSee) {
  const Outcome outcome = shardwise(
      tiny_step({"--gpus", "16", "--trials", "1", "--failed-links", "1", "--contention", "off"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("needs contention: without it no links are shared"));
}

TEST(Simulate, DrawsAPicture) {
  const std::string svg = simulate_output("step.svg");
  const Outcome outcome = shardwise(tiny_step({"--svg", svg}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(svg);
  std::string first;
  std::getline(in, first);
  EXPECT_THAT(first, HasSubstr("<svg "));
  std::filesystem::remove(svg);
}

TEST(Simulate, ReadsAPackedTraceAndRefusesADamagedOne) {
  const std::string packed = simulate_output("packed.json.gz");
  const std::string text = *read_file("tests/golden/profiler_trace.json");
  gzFile file = gzopen(packed.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
  const Outcome plain =
      shardwise(tiny_step({"--import", "tests/golden/profiler_trace.json", "--json"}));
  EXPECT_EQ(shardwise(tiny_step({"--import", packed, "--json"})).out, plain.out);

  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  const Outcome damaged = shardwise(tiny_step({"--import", packed}));
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, HasSubstr(packed + ": a damaged gzip archive: it ends too early"));
  std::filesystem::remove(packed);
}

TEST(Simulate, ReadsAnArchiveOfSeveralMembersAsOneText) {
  const std::string packed = simulate_output("members.json.gz");
  const std::string text = *read_file("tests/golden/profiler_trace.json");
  for (std::size_t at = 0; at < text.size(); at += 1000) {
    gzFile file = gzopen(packed.c_str(), at == 0 ? "wb" : "ab");
    gzwrite(file, text.data() + at,
            static_cast<unsigned>(std::min<std::size_t>(1000, text.size() - at)));
    gzclose(file);
  }
  const Outcome plain =
      shardwise(tiny_step({"--import", "tests/golden/profiler_trace.json", "--json"}));
  EXPECT_EQ(shardwise(tiny_step({"--import", packed, "--json"})).out, plain.out);
  std::filesystem::remove(packed);
}

TEST(Simulate, ImportsItsOwnTraceAtItsOwnGranularity) {
  const std::string trace = simulate_output("kernels.json");
  ASSERT_EQ(shardwise(tiny_step({"--granularity", "kernel", "--trace", trace})).exit_code, 0);
  const Outcome outcome = shardwise(tiny_step({"--import", trace, "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "shardwise.import/1");
  EXPECT_EQ(json["recorded_by"], "shardwise");
  EXPECT_GT(json["operations"].size(), 100U);
  for (const auto& row : json["operations"]) {
    EXPECT_NEAR(row["difference_s"].get<double>(), 0, 1e-7) << row["name"];
  }
  const Outcome other = shardwise(tiny_step({"--import", trace, "--granularity", "layer"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--granularity: layer, but"));
  std::filesystem::remove(trace);
}

TEST(Simulate, SaysWhenThereIsNoPlan) {
  const Outcome outcome = shardwise({"simulate", "no_such_plan.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no_such_plan.json: no such file"));
}

}  // namespace
}  // namespace shardwise::cli
