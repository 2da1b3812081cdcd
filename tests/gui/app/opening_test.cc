// What the command line opens, whole programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <filesystem>
#include <string>

#include "gui/app/left_window.h"
#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/simulate.h"
#include "tests/gui/small_plan.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

using test::built;
using test::Outcome;

class Opening : public testing::Test {
 protected:
  Outcome view(std::vector<std::string> arguments) const {
    return test::run_program(built("shardwise-view"), arguments);
  }
  /// Runs a script with these files. \returns standard error
  std::string script(const std::string& text, std::vector<std::string> files, int code = 0) const {
    files.insert(files.begin(), {"--script", scratch_.write_bytes("steps.txt", text)});
    const Outcome done = view(files);
    EXPECT_EQ(done.exit_code, code) << done.err;
    return done.err;
  }
  test::Scratch scratch_;
  std::string plan_ = scratch_.write_bytes("plan.json", to_json(test::small_plan()));
  std::string report_ =
      scratch_.write_bytes("report.json", report_json(sim::simulate(test::small_plan()).report));
};

TEST_F(Opening, ComparesAPlanWithWhatFollowsIt) {
  script("view.memory\nexpect probe compare.same\nexpect probe memory.tick.pass\n",
         {plan_, report_});
  script("view.timeline\nexpect probe compare.same\n", {plan_, plan_});
  script("compare.open " + report_ +
             "\nexpect probe compare.same\ncompare.close\n"
             "expect probe explorer\n",
         {plan_});
}

TEST_F(Opening, AModelAndAClusterAreThePlanThatTheCommandRanksFirst) {
  const std::string made = scratch_.path("made.json");
  const std::string saved = scratch_.path("saved.json");
  const std::vector<std::string> question = {"--model",  "gpt2",   "--cluster",
                                             "dgx-h100", "--gpus", "4"};
  std::vector<std::string> plan = question;
  plan.insert(plan.begin(), "plan");
  plan.insert(plan.end(), {"-o", made});
  ASSERT_EQ(test::run_program(built("shardwise"), plan).exit_code, 0);
  script("export.plan " + saved + "\n", question);
  EXPECT_TRUE(test::bytes_of_file(saved) == test::bytes_of_file(made));
}

TEST_F(Opening, AReportOfCatalogueNamesStandsAlone) {
  const std::string made = scratch_.path("made.json");
  const std::string report = scratch_.path("alone.json");
  const std::string saved = scratch_.path("saved.json");
  ASSERT_EQ(test::run_program(built("shardwise"), {"plan", "--model", "gpt2", "--cluster",
                                                   "dgx-h100", "--gpus", "4", "-o", made})
                .exit_code,
            0);
  ASSERT_EQ(test::run_program(built("shardwise"), {"simulate", made, "-o", report}).exit_code, 0);
  script("expect probe compare.same\nexport.plan " + saved + "\n", {report});
  EXPECT_TRUE(test::bytes_of_file(saved) == test::bytes_of_file(made));
  EXPECT_THAT(script("", {report_}, 2), testing::HasSubstr("give the plan first"));
}

TEST_F(Opening, RefusesEachWithOneLineAndLeavesNoPicture) {
  const std::string picture = scratch_.path("a.png");
  const std::string broken = scratch_.write_bytes("broken.json", "{\"schema\": \"shardwise.rep");
  const std::string nested = scratch_.write_bytes("nested.json", std::string(100'000, '['));
  const std::string none = scratch_.write_bytes("none.json", R"({"traceEvents": {}})");
  const std::string trace = scratch_.write_bytes(
      "trace.json", R"([{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":4}])");
  const struct {
    std::vector<std::string> files;
    const char* said;
  } wrong_lines[] = {
      {{nested}, "nested deeper than"},
      {{none}, "traceEvents is no list"},
      {{trace}, "a trace has no plan in it"},
      {{plan_, broken}, "broken.json:1"},
      {{broken}, "broken.json:1"},
      {{plan_, report_, report_}, "a second file to compare with"},
      {{plan_, "--model", "gpt2", "--cluster", "dgx-h100"}, "--model: "},
      {{plan_, "--gpus", "8"}, "already sets it"},
      {{"--model", "gpt2"}, "no cluster"},
      {{"--cluster", "dgx-h100"}, "no model"},
      {{report_, "--gpus", "8"}, "no model"},
      {{"--model", "gpt22", "--cluster", "dgx-h100"}, "is not in the catalogue"},
      {{plan_, "--metrics", scratch_.path("none.jsonl")}, "no such file"},
      {{plan_, "--layout", broken}, "broken.json:1"},
      {{}, "no plan"},
  };
  for (const auto& wrong : wrong_lines) {
    std::vector<std::string> arguments = wrong.files;
    arguments.insert(arguments.begin(), {"--shot", picture});
    const Outcome refused = view(arguments);
    EXPECT_EQ(refused.exit_code, 2) << wrong.said;
    EXPECT_THAT(refused.err, testing::HasSubstr(wrong.said));
    EXPECT_FALSE(std::filesystem::exists(picture)) << wrong.said;
  }
}

TEST_F(Opening, AScriptEndsAtAFileThatCannotBeRead) {
  const std::string broken = scratch_.write_bytes("broken.json", "{\"schema\": \"shardwise.rep");
  const std::string said = script("view.memory\nfile.open " + broken + "\n", {plan_}, 2);
  EXPECT_THAT(said, testing::HasSubstr("steps.txt:2: "));
  EXPECT_THAT(said, testing::HasSubstr("broken.json:1"));
}

TEST_F(Opening, FollowsMetricsFromTheCommandLine) {
  const std::string metrics = scratch_.write_bytes(
      "m.jsonl",
      "{\"schema\":\"shardwise.metrics/1\"}\n"
      "{\"step\":0,\"loss\":2,\"gradient_norm\":1,\"learning_rate\":1,\"step_time_s\":1.5,"
      "\"tokens_per_s\":10,\"held_by_checkpoint_s\":0}\n");
  script("expect probe metrics.time\nexpect probe metrics.loss\nmetrics.poll\n",
         {plan_, "--metrics", metrics});
}

TEST_F(Opening, SavedPlacesOfPanelsAreDrawnAgainAndSavedTheSame) {
  const std::string first = scratch_.path("first.json");
  const std::string second = scratch_.path("second.json");
  script("view.save " + first + "\n", {plan_});
  script("view.save " + second + "\n", {plan_, "--layout", first});
  EXPECT_TRUE(test::bytes_of_file(first) == test::bytes_of_file(second));
  const auto shot = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--shot", "-", plan_});
    return view(more).out;
  };
  EXPECT_TRUE(shot({"--layout", first}) == shot({}));
}

TEST(WindowAsItWasLeft, IsRestoredAndABrokenFileIsIgnoredWithAMessage) {
  Session session(test::small_plan(), Timing::fitting);
  Stage stage(FontChoice::built_in, 1);
  const auto draw = [&] { draw_settled(stage, session, {1280, 800}); };
  const test::Scratch scratch;
  draw();
  session.set_dark(false);
  session.set_workspace(Workspace::mesh);
  const std::string file = scratch.path("view.json");
  keep_view(file, stage, session, 1111, 777);
  session.set_dark(true);
  session.set_workspace(Workspace::explore);
  Options options;
  restore_view(file, stage, session, options);
  EXPECT_EQ(options.width, 1111);
  EXPECT_EQ(options.height, 777);
  EXPECT_FALSE(session.state().dark);
  EXPECT_EQ(session.state().workspace, Workspace::mesh);
  draw();
  const std::string broken = scratch.write_bytes("broken.json", "{\"schema\": 5}");
  session.say("");
  restore_view(broken, stage, session, options);
  EXPECT_THAT(session.state().message, testing::StartsWith("ignored: "));
  EXPECT_EQ(session.state().workspace, Workspace::mesh);
  session.say("");
  restore_view(scratch.path("none.json"), stage, session, options);
  EXPECT_EQ(session.state().message, "");
}

}  // namespace
}  // namespace shardwise::view
