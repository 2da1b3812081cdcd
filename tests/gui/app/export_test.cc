// What leaves the viewer: the same as commands write, whole or not at all.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "gui/models/commands/commands.h"
#include "planner/model/hf_config.h"
#include "planner/question/command_of_plan.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/format.h"
#include "tests/gui/small_plan.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

using test::built;
using test::bytes_of_file;
using test::run_program;

class Export : public testing::Test {
 protected:
  Export() { session_.settle(); }
  static Plan plan() {
    Plan plan = test::small_plan();
    plan.model = *load_model("gpt2-xl");
    plan.job.sequence_length = 1024;  // positions of its table
    plan.job.loss = LossKernel::fused_fp32;
    return plan;
  }
  const AppState& state() const { return session_.state(); }
  test::Scratch scratch_;
  Session session_{plan()};
};

TEST_F(Export, TheCommandOfARowPrintsItsMemoryAndItsTime) {
  for (const std::size_t place : {0U, 7U, 30U}) {
    ASSERT_LT(place, state().shown.size());
    session_.select_row(state().shown[place]);
    session_.settle();
    ASSERT_EQ(run_command(session_, "export.command"), "");
    std::istringstream words(session_.take_copied());
    std::string program;
    words >> program;
    EXPECT_EQ(program, "shardwise");
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    ASSERT_NE(state().simulated, nullptr);
    EXPECT_EQ(arguments.front(), "simulate");
    arguments.emplace_back("--json");
    const test::Outcome said = run_program(built("shardwise"), arguments);
    ASSERT_TRUE(said.exit_code == 0 || said.exit_code == 1) << said.err;
    const Result<JsonValue> json = parse_json(said.out, "estimate");
    ASSERT_TRUE(json);
    const JsonValue* const time = json->find("step_time_s");
    ASSERT_NE(time, nullptr) << said.out.substr(0, 2000);
    EXPECT_EQ(time->number, state().best_report().step_time.value());
    const JsonValue* const verdict = json->find("verdict");
    ASSERT_NE(verdict, nullptr);
    EXPECT_EQ(verdict->find("point_bytes")->integer, state().report.verdict.point.value());
  }
  EXPECT_EQ(session_.take_copied(), "");
}

TEST_F(Export, ReportAndTraceAreWhatSimulateWrites) {
  const std::string plan = scratch_.path("plan.json");
  ASSERT_EQ(run_command(session_, "export.plan " + plan), "");
  const std::string report = scratch_.path("theirs.json");
  const std::string trace = scratch_.path("theirs.trace.json");
  ASSERT_EQ(
      run_program(built("shardwise"), {"simulate", plan, "-o", report, "--trace", trace}).exit_code,
      0);
  ASSERT_EQ(run_command(session_, "export.report " + scratch_.path("ours.json")), "");
  ASSERT_EQ(run_command(session_, "export.trace " + scratch_.path("ours.trace.json")), "");
  session_.settle();
  EXPECT_TRUE(bytes_of_file(scratch_.path("ours.json")) == bytes_of_file(report));
  EXPECT_TRUE(bytes_of_file(scratch_.path("ours.trace.json")) == bytes_of_file(trace));
}

TEST_F(Export, AFullDiskLeavesNothingAndIsSaid) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* const what : {"csv", "plan", "report", "trace", "command", "json"}) {
    for (const char* const where : {"/dev/full", "/no/such/place/x"}) {
      std::string said = run_command(session_, fmt::format("export.{} {}", what, where));
      session_.settle();
      // Large files are made beside the frames.
      if (said.empty()) said = session_.take_failure().message;
      EXPECT_THAT(said, testing::HasSubstr(where)) << what;
    }
  }
}

TEST_F(Export, LargeFilesAreMadeBesideTheFramesAndBeforeTheWindowEnds) {
  const std::string report = scratch_.path("report.json");
  const std::string trace = scratch_.path("trace.json");
  const std::string page = scratch_.path("page.html");
  session_.reader().hold();
  ASSERT_EQ(run_command(session_, "export.report " + report), "");
  ASSERT_EQ(run_command(session_, "export.trace " + trace), "");
  ASSERT_EQ(run_command(session_, "export.page " + page), "");
  session_.collect();
  for (const std::string& each : {report, trace, page}) {
    EXPECT_FALSE(std::filesystem::exists(each)) << each;
  }
  EXPECT_EQ(state().message, "making " + page + " …");
  session_.reader().release();
  session_.finish_files();
  for (const std::string& each : {report, trace, page}) {
    EXPECT_TRUE(std::filesystem::exists(each)) << each;
  }
  EXPECT_EQ(state().message, "wrote " + page);
}

TEST_F(Export, APlanThatIsLoadedAgainIsTheSameState) {
  const std::string file = scratch_.path("plan.json");
  session_.select_row(state().shown[3]);
  session_.settle();
  ASSERT_EQ(run_command(session_, "export.plan " + file), "");
  const Result<Plan> read = read_plan(file);
  ASSERT_TRUE(read);
  Session again(*read);
  again.settle();
  EXPECT_EQ(again.state().report.step_time, state().report.step_time);
  ASSERT_EQ(again.state().shown.size(), state().shown.size());
  for (std::size_t i = 0; i < state().shown.size(); ++i) {
    const LayoutRow& ours = state().answer.rows[state().shown[i]];
    const LayoutRow& theirs = again.state().answer.rows[again.state().shown[i]];
    EXPECT_EQ(ours.layout, theirs.layout);
    EXPECT_EQ(ours.time, theirs.time);
  }
}

TEST_F(Export, ThePageIsWhatReportWrites) {
  const std::string plan = scratch_.path("plan.json");
  ASSERT_EQ(run_command(session_, "export.plan " + plan), "");
  ASSERT_EQ(run_program(built("shardwise"), {"report", plan, "-o", scratch_.path("theirs.html")})
                .exit_code,
            0);
  ASSERT_EQ(run_command(session_, "export.page " + scratch_.path("ours.html")), "");
  session_.settle();
  // They differ in the command that made them, and in the digest of the page for it.
  std::istringstream ours(bytes_of_file(scratch_.path("ours.html")));
  std::istringstream theirs(bytes_of_file(scratch_.path("theirs.html")));
  std::size_t lines = 0;
  for (std::string a, b; std::getline(ours, a) && std::getline(theirs, b); ++lines) {
    EXPECT_TRUE(a == b || a.find("shardwise report") != std::string::npos ||
                a.find("page-sha256") != std::string::npos)
        << a.substr(0, 200);
  }
  EXPECT_GT(lines, 50U);
}

TEST_F(Export, ThePageBesideARunIsTheBytesThatReportWrites) {
  const std::string plan = scratch_.path("plan.json");
  const std::string measured = scratch_.path("measured.json");
  ASSERT_EQ(run_command(session_, "export.plan " + plan), "");
  ASSERT_EQ(run_command(session_, "export.report " + measured), "");
  session_.settle();
  std::string text = bytes_of_file(measured);
  const std::string predicted = "\"origin\": \"predicted\"";
  text.replace(text.find(predicted), predicted.size(), "\"origin\": \"measured\"");
  scratch_.write_bytes("measured.json", text);
  const std::string page = scratch_.path("page.html");
  ASSERT_EQ(run_program(built("shardwise"), {"report", plan, measured, "-o", page}).exit_code, 0);
  const std::string theirs = bytes_of_file(page);
  std::filesystem::remove(page);
  ASSERT_EQ(run_command(session_, "compare.open " + measured), "");
  session_.settle();
  ASSERT_EQ(run_command(session_, "export.page " + page), "");
  session_.settle();
  EXPECT_TRUE(bytes_of_file(page) == theirs);
}

TEST_F(Export, ThePageOfAPlanThatIsInNoFileNamesItself) {
  const std::string page = scratch_.path("page.html");
  ASSERT_EQ(run_command(session_, "export.page " + page), "");
  session_.settle();
  EXPECT_THAT(bytes_of_file(page),
              testing::HasSubstr("shardwise report " + page + " -o again.html"));
  EXPECT_EQ(run_program(built("shardwise"),
                        {"report", page, "--top", "0", "-o", scratch_.path("again.html")})
                .exit_code,
            0);
}

TEST_F(Export, TheCommandOfAModelOfOnesOwnNamesThePlan) {
  Plan own = plan();
  own.model.name = "mine";
  Session session(own, Timing::fitting);
  session.settle();
  EXPECT_THAT(run_command(session, "export.command"), testing::HasSubstr("export.plan FILE"));
  const std::string file = scratch_.path("plan.json");
  ASSERT_EQ(run_command(session, "export.plan " + file), "");
  ASSERT_EQ(run_command(session, "export.command"), "");
  EXPECT_EQ(session.take_copied(), "shardwise simulate " + file);
}

TEST_F(Export, JsonHasTheLayoutAndItsNumbers) {
  ASSERT_EQ(run_command(session_, "export.json " + scratch_.path("row.json")), "");
  const Result<JsonValue> json = read_json(scratch_.path("row.json"));
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("memory_bytes")->integer, state().report.verdict.point.value());
  EXPECT_EQ(json->find("layout")->find("dp_shard")->integer, 8);
}

}  // namespace
}  // namespace shardwise::view
