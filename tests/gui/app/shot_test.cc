#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "planner/spec/plan/plan.h"
#include "tests/gui/small_plan.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::test {
namespace {

class Shot : public testing::Test {
 protected:
  Outcome view(std::vector<std::string> arguments) const {
    return run_program(built("shardwise-view"), arguments);
  }
  Scratch scratch_;
  std::string plan_ = scratch_.write_bytes("plan.json", to_json(small_plan()));
};

TEST_F(Shot, WritesAPictureOfTheSizeAskedForWithoutADisplay) {
  const std::string file = scratch_.path("a.png");
  const Outcome done = view({"--shot", file, "--size", "1000x700", plan_});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "");
  const std::string png = bytes_of_file(file);
  ASSERT_THAT(png, testing::StartsWith("\x89PNG"));
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(png[at]); };
  EXPECT_EQ(byte(18) * 256 + byte(19), 1000);
  EXPECT_EQ(byte(22) * 256 + byte(23), 700);
}

TEST_F(Shot, WritesToStandardOutputTheBytesOfTheFile) {
  const std::string file = scratch_.path("a.png");
  EXPECT_EQ(view({"--shot", file, "--size", "640x400", plan_}).exit_code, 0);
  const Outcome piped = view({"--shot", "-", "--size", "640x400", plan_});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, bytes_of_file(file));
}

TEST_F(Shot, LeavesNoFileForAPlanThatIsNone) {
  const std::string broken =
      scratch_.write_bytes("broken.json", "{\"schema\": \"shardwise.plan/1\"");
  const std::string file = scratch_.path("a.png");
  const Outcome refused = view({"--shot", file, broken});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("broken.json:1"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Shot, RefusesToOverwriteItsPlan) {
  const Outcome refused = view({"--shot", plan_, plan_});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(bytes_of_file(plan_), to_json(small_plan()));
}

TEST_F(Shot, WithoutADisplayAWindowIsOneLineThatPointsAtPicturesAndPages) {
  const Outcome refused = run_program(
      "env", {"-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", built("shardwise-view"), plan_});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  EXPECT_THAT(refused.err, testing::HasSubstr("--shot"));
  EXPECT_THAT(refused.err, testing::HasSubstr("shardwise report"));
}

TEST_F(Shot, IsTheSameByTheVerbOfTheCommand) {
  const Outcome direct = view({"--shot", "-", "--size", "640x400", plan_});
  const Outcome handed =
      run_program(built("shardwise"), {"view", "--shot", "-", "--size", "640x400", plan_});
  EXPECT_EQ(handed.exit_code, 0) << handed.err;
  EXPECT_EQ(handed.out, direct.out);
}

TEST_F(Shot, SaysWhatIsWrongWithTheCommandLine) {
  const auto said = [&](std::vector<std::string> arguments) {
    const Outcome refused = view(std::move(arguments));
    EXPECT_EQ(refused.exit_code, 2);
    return refused.err;
  };
  EXPECT_EQ(said({"--shot", "a.png", "--size", "9", plan_}),
            "shardwise-view: --size: 9 is not WIDTHxHEIGHT in pixels, 64 to 16384 each\n");
  EXPECT_EQ(said({"--view", "explorer", plan_}),
            "shardwise-view: --view: explorer is none of explore, memory, timeline, mesh, "
            "scaling\n");
  EXPECT_EQ(said({"--scale", "0", plan_}),
            "shardwise-view: --scale: 0 is not a number from 0.5 to 8\n");
  EXPECT_THAT(said({"--shot", "a.png"}), testing::HasSubstr("no plan"));
}

}  // namespace
}  // namespace shardwise::test
