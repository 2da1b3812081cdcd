#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "tests/gui/small_plan.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::test {
namespace {

class Script : public testing::Test {
 protected:
  Outcome run(const std::string& text) const {
    const std::string script = scratch_.write_bytes("steps.txt", text);
    return run_program(built("shardwise-view"), {"--script", script, plan_});
  }
  Scratch scratch_;
  std::string plan_ = scratch_.write_bytes("plan.json", to_json(small_plan()));
};

TEST_F(Script, SelectsSortsAndSavesThePlanThatIsSelected) {
  const std::string saved = scratch_.path("second.json");
  const Outcome done =
      run("# the row with the least memory\n"
          "\n"
          "table.sort memory\n"
          "click explorer.row.1\n"
          "export.plan " +
          saved + "\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const Result<Plan> plan = read_plan(saved);
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan->layout, small_plan().layout);
}

TEST_F(Script, DragsASliderAndDrawsAPicture) {
  const std::string picture = scratch_.path("a.png");
  const Outcome done =
      run("drag what_if.tp 400 0\nkey 3\nexpect probe timeline.canvas\nshot " + picture + "\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(bytes_of_file(picture), testing::StartsWith("\x89PNG"));
}

TEST_F(Script, SavesPicturesAtAnyScale) {
  const std::string once = scratch_.path("once.png");
  const std::string twice = scratch_.path("twice.png");
  const std::string again = scratch_.path("again.png");
  const Outcome done = run("export.png " + twice + " 2\nexport.png " + once + " 1\nshot " + again +
                           "\nexport.png " + again + ".2 2\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto width = [&](const std::string& file) {
    const std::string png = bytes_of_file(file);
    return 256 * static_cast<std::uint8_t>(png.at(18)) + static_cast<std::uint8_t>(png.at(19));
  };
  EXPECT_EQ(width(once), 1600);
  EXPECT_EQ(width(twice), 3200);
  EXPECT_TRUE(bytes_of_file(once) == bytes_of_file(again));
  EXPECT_TRUE(bytes_of_file(twice) == bytes_of_file(again + ".2"));
  EXPECT_THAT(run("export.png a.png 99\n").err, testing::HasSubstr("scale: 99 is not a number"));
}

TEST_F(Script, DrawsTheMiddleOfADrag) {
  const std::string middle = scratch_.path("middle.png");
  const std::string after = scratch_.path("after.png");
  const Outcome done = run("press what_if.micro_batch_size 60 0\nshot " + middle +
                           "\nrelease\nquestion.undo\nshot " + after + "\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(bytes_of_file(middle), bytes_of_file(after));
  EXPECT_THAT(run("release now\n").err, testing::HasSubstr("release takes nothing after it"));
}

TEST_F(Script, EndsAtTheFirstLineThatIsWrong) {
  const std::string saved = scratch_.path("p.json");
  const Outcome refused = run("view.memory\nclick no.such.thing\nexport.plan " + saved + "\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              testing::HasSubstr("steps.txt:2: nothing of that name is on screen: no.such.thing"));
  EXPECT_FALSE(std::filesystem::exists(saved));
}

TEST_F(Script, SaysWhatACommandSays) {
  EXPECT_THAT(run("table.filter tpp<8\n").err, testing::HasSubstr("tpp is no column"));
  EXPECT_THAT(run("key Hyper+Q\n").err, testing::HasSubstr("Hyper+Q is no key"));
  EXPECT_THAT(run("press what_if.tp\n").err, testing::HasSubstr("press needs how far"));
  EXPECT_THAT(run("press what_if.tp 90\n").err,
              testing::HasSubstr("in pixels to the right and down: press what_if.tp 90 0"));
  EXPECT_THAT(run("drag what_if.tp left\n").err, testing::HasSubstr("left is not a number"));
}

TEST_F(Script, SaysWhereItStoppedAndThatTheRestWasDone) {
  const std::string saved = scratch_.path("p.json");
  const Outcome refused = run("export.plan " + saved + "\nview.attic\nview.memory\n");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("steps.txt:2: "));
  EXPECT_THAT(refused.err, testing::EndsWith("\nstopped at line 2\n"));
  EXPECT_THAT(refused.err, testing::Not(testing::HasSubstr("nothing was run")));
  EXPECT_TRUE(std::filesystem::exists(saved));
}

TEST_F(Script, EndsWithThreeAndItsLineWhereTheSystemWritesNothing) {
  for (const char* const what :
       {"export.page", "export.plan", "export.csv", "export.report", "export.trace", "export.png",
        "export.command", "export.json", "shot", "view.save"}) {
    const Outcome failed =
        run(std::string("view.memory\n") + what + " " + scratch_.path("none/a") + "\nview.mesh\n");
    EXPECT_EQ(failed.exit_code, 3) << what << failed.err;
    EXPECT_THAT(failed.err, testing::HasSubstr("steps.txt:2: ")) << what;
    EXPECT_THAT(failed.err, testing::HasSubstr("none/a: cannot be written")) << what;
  }
}

TEST_F(Script, WritesOverNothingThatItReads) {
  const std::string script = scratch_.path("steps.txt");
  const std::string second = scratch_.write_bytes("second.json", to_json(small_plan()));
  const std::string link = scratch_.path("link");
  std::filesystem::create_symlink(plan_, link);
  const struct {
    std::string before;
    std::string file;
  } inputs[] = {{"", plan_},
                {"", link},
                {"", script},
                {"file.open " + second + "\n", second},
                {"compare.open " + second + "\n", second}};
  for (const auto& input : inputs) {
    for (const char* const what : {"export.plan", "export.png", "shot", "view.save"}) {
      const std::string text = input.before + what + " " + input.file + "\n";
      const Outcome refused = run(text);
      EXPECT_EQ(refused.exit_code, 2) << text;
      EXPECT_THAT(refused.err, testing::HasSubstr(input.file + " is the same file as the input"));
      EXPECT_EQ(bytes_of_file(plan_), to_json(small_plan()));
      EXPECT_EQ(bytes_of_file(second), to_json(small_plan()));
      EXPECT_EQ(bytes_of_file(script), text);
    }
  }
  EXPECT_EQ(
      run("compare.open " + second + "\ncompare.close\nexport.plan " + second + "\n").exit_code, 0);
}

TEST_F(Script, IsReadBeforeAnythingIsSearched) {
  const std::string none = scratch_.path("none.txt");
  for (const std::vector<std::string>& files :
       {std::vector<std::string>{"--script", none}, {"--layout", none, "--shot", "-"}}) {
    std::vector<std::string> arguments = files;
    arguments.insert(arguments.end(), {"--model", "none.such", "--cluster", "none.such"});
    EXPECT_THAT(run_program(built("shardwise-view"), arguments).err,
                testing::StartsWith(none + ": no such file"));
  }
  const Outcome unwritable = run_program(
      built("shardwise-view"),
      {"--shot", scratch_.path("none/a.png"), "--model", "none.such", "--cluster", "none.such"});
  EXPECT_EQ(unwritable.exit_code, 3);
  EXPECT_THAT(unwritable.err, testing::HasSubstr("none/a.png: cannot be written"));
}

TEST_F(Script, RefusesPipesAtOnceWhereverAFileIsRead) {
  const std::string pipe = scratch_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto said = [&](std::vector<std::string> arguments) {
    const Outcome refused = run_program(built("shardwise-view"), arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments.front();
    return refused.err;
  };
  const auto refuses = testing::HasSubstr(pipe + ": a pipe, not a regular file");
  EXPECT_THAT(said({"--shot", "-", pipe}), refuses);
  EXPECT_THAT(said({"--shot", "-", plan_, pipe}), refuses);
  EXPECT_THAT(said({"--shot", "-", "--layout", pipe, plan_}), refuses);
  EXPECT_THAT(said({"--shot", "-", "--metrics", pipe, plan_}), refuses);
  EXPECT_THAT(said({"--script", pipe, plan_}), refuses);
  for (const char* const what : {"file.open ", "compare.open ", "view.load ", "metrics.follow "}) {
    EXPECT_THAT(run(what + pipe + "\n").err, refuses) << what;
  }
}

TEST_F(Script, NamesNoFlagThatNobodyGave) {
  const std::string said = run("question.model none.such\n").err;
  EXPECT_THAT(said,
              testing::HasSubstr("steps.txt:1: model: \"none.such\" is not in the catalogue"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("--model")));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("\\n")));
}

}  // namespace
}  // namespace shardwise::test
