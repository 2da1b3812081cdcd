#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "planner/spec/plan.h"
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
  EXPECT_THAT(run("drag what_if.tp left\n").err, testing::HasSubstr("left is not a number"));
}

}  // namespace
}  // namespace shardwise::test
