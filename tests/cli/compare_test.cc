#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/tiny_step.h"

namespace shardwise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string read(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string compare_output(const char* name) { return testing::TempDir() + "compare_test_" + name; }

TEST(Compare, FindsNoDifferenceBetweenAReportAndItself) {
  const std::string report = compare_output("report.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", report})).exit_code, 0);
  const Outcome outcome = shardwise({"compare", report, report, "--tolerance", "0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nB takes the same time as A;"));
  std::filesystem::remove(report);
}

TEST(Compare, SaysHowMuchMoreOrLessTimeTheSecondTakes) {
  const std::string one = compare_output("short_sequences.json");
  const std::string two = compare_output("long_sequences.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", one, "--sequence-length", "512"})).exit_code, 0);
  ASSERT_EQ(shardwise(tiny_step({"-o", two})).exit_code, 0);
  EXPECT_THAT(shardwise({"compare", one, two}).out,
              testing::ContainsRegex("\nB takes [0-9]+\\.[0-9] % more time than A;"));
  EXPECT_THAT(shardwise({"compare", two, one}).out,
              testing::ContainsRegex("\nB takes [0-9]+\\.[0-9] % less time than A;"));
  std::filesystem::remove(one);
  std::filesystem::remove(two);
}

TEST(Compare, SaysWhatTheLayoutsDifferIn) {
  const std::string one = compare_output("one_chunk.json");
  const std::string two = compare_output("two_chunks.json");
  for (const auto& [vpp, file] : {std::pair("1", one), std::pair("2", two)}) {
    const Outcome made =
        shardwise({"simulate", "--model", "pythia-160m", "--cluster", "dgx-h100", "--gpus", "4",
                   "--pp", "2", "--vpp", vpp, "--global-batch-size", "8", "-o", file});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  const Outcome outcome = shardwise({"compare", one, two});
  EXPECT_THAT(outcome.out, HasSubstr("\nB has vpp 2 instead of 1\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("layer[0-9]+ +0 → 1 "));
  EXPECT_THAT(shardwise({"compare", one, one}).out, testing::Not(HasSubstr("instead of")));
  std::filesystem::remove(one);
  std::filesystem::remove(two);
}

TEST(Compare, JoinsAReportAndATraceOfTheSameStep) {
  const std::string report = compare_output("joined_report.json");
  const std::string trace = compare_output("joined_trace.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", report, "--trace", trace})).exit_code, 0);
  for (const auto& [a, b] :
       {std::pair(report, trace), std::pair(trace, report), std::pair(trace, trace)}) {
    const Outcome outcome = shardwise({"compare", a, b, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_GT(json["operations"].size(), 50U);
    for (const auto& row : json["operations"]) {
      EXPECT_NEAR(row["difference_s"].get<double>(), 0, 1e-7) << row["name"];
    }
  }
  std::filesystem::remove(report);
  std::filesystem::remove(trace);
}

TEST(Compare, JoinsTwoProfilersTracesByKindAndKernel) {
  const std::string trace = "tests/golden/profiler_trace.json";
  const Outcome outcome = shardwise({"compare", trace, trace});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("a profiler's trace, median of 2 steps: 960 us"));
  EXPECT_THAT(outcome.out, HasSubstr("nvjet_tst"));
}

TEST(Compare, RefusesAProfilersTraceBesideAReport) {
  const std::string report = "tests/fuzz/corpus/report/gpt2_tiny.json";
  const std::string trace = "tests/golden/profiler_trace.json";
  for (const auto& [a, b] : {std::pair(report, trace), std::pair(trace, report)}) {
    const Outcome outcome = shardwise({"compare", a, b});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err,
              "tests/golden/profiler_trace.json: a profiler's trace has kernels, "
              "tests/fuzz/corpus/report/gpt2_tiny.json has operations of a step program\n"
              "    shardwise simulate PLAN --import compares a profiler's trace by kind and phase\n"
              "1 problem, nothing was run\n");
  }
}

TEST(Compare, ExitsWithOneBeyondItsTolerance) {
  const std::string one = compare_output("one.json");
  const std::string longer = compare_output("longer.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", one, "--sequence-length", "512"})).exit_code, 0);
  ASSERT_EQ(shardwise(tiny_step({"-o", longer})).exit_code, 0);
  EXPECT_EQ(shardwise({"compare", one, longer, "--tolerance", "0.01"}).exit_code, 1);
  std::filesystem::remove(one);
  std::filesystem::remove(longer);
}

// A step of ten times the memory, and one of another model, passed for the same.
TEST(Compare, HasATimeAndAMemoryToleranceAndSaysWhereTheWorkDiffers) {
  const std::string one = compare_output("small.json");
  const std::string two = compare_output("large.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", one, "--sequence-length", "512"})).exit_code, 0);
  ASSERT_EQ(shardwise(tiny_step({"-o", two})).exit_code, 0);
  const Outcome time = shardwise({"compare", one, two, "--tolerance", "100"});
  EXPECT_EQ(time.exit_code, 0);
  EXPECT_THAT(time.out, HasSubstr("\nA and B have different sequence lengths: their steps do "
                                  "different work\n"));
  EXPECT_EQ(shardwise({"compare", one, two, "--tolerance", "100", "--memory-tolerance", "0.01"})
                .exit_code,
            1);
  EXPECT_EQ(shardwise({"compare", one, one, "--memory-tolerance", "0"}).exit_code, 0);
  EXPECT_THAT(shardwise({"compare", one, one}).out, Not(HasSubstr("different")));
  const std::string text = read(one);
  const std::size_t at = text.find("\"model\": \"");
  ASSERT_NE(at, std::string::npos);
  const std::string other = compare_output("other_model.json");
  std::ofstream(other) << std::string(text).insert(at + 10, "another-");
  EXPECT_THAT(shardwise({"compare", one, other}).out, HasSubstr("A and B have different models:"));
  for (const std::string& file : {one, two, other}) std::filesystem::remove(file);
}

TEST(Compare, NamesEveryFileThatIsMissing) {
  const Outcome outcome = shardwise({"compare", "no_a.json", "no_b.json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no_a.json"));
  EXPECT_THAT(outcome.err, HasSubstr("no_b.json"));
}

// The JSON has the keys of a report; people read the words of every other table.
TEST(Compare, CallsPartsOfAStepByTheirLabels) {
  const std::string a = compare_output("labels_a.json");
  const std::string b = compare_output("labels_b.json");
  ASSERT_EQ(shardwise(tiny_step({"-o", a})).exit_code, 0);
  ASSERT_EQ(shardwise(tiny_step({"--sequence-length", "1024", "-o", b})).exit_code, 0);
  const Outcome outcome = shardwise({"compare", a, b, "--long"});
  EXPECT_THAT(outcome.out, HasSubstr("lost to data parallelism"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("dp_exposed")));
  EXPECT_THAT(shardwise({"compare", a, b, "--json"}).out, HasSubstr("\"dp_exposed\""));
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

}  // namespace
}  // namespace shardwise::cli
