#include "gui/models/window/left_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

constexpr const char* kOnePanel =
    "[Window][Strategies###explorer.explore]\nPos=10,20\nSize=300,400\nCollapsed=0\n"
    "DockId=0x00000002,0\n\n[Docking][Data]\n"
    "DockSpace   ID=0x0BADC0DE Window=0x0BADCAFE Pos=0,0 Size=9,9 Split=X\n"
    "  DockNode  ID=0x00000002 Parent=0x0BADC0DE SizeRef=4,9\n"
    "  DockNode  ID=0x00000003 Parent=0x0BADC0DE SizeRef=5,9\n";

TEST(LeftView, ReadsBackAsItWasWritten) {
  const test::Scratch scratch;
  const LeftView left{1280, 800, false, Workspace::mesh, kOnePanel};
  const Result<LeftView> read = read_view(scratch.write_bytes("view.json", to_json(left)));
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(read->width, 1280);
  EXPECT_EQ(read->height, 800);
  EXPECT_FALSE(read->dark);
  EXPECT_EQ(read->workspace, Workspace::mesh);
  EXPECT_EQ(read->panels, kOnePanel);
}

TEST(LeftView, SaysWhatIsWrongWithAFile) {
  const test::Scratch scratch;
  const auto said = [&](const std::string& text) {
    const Result<LeftView> read = read_view(scratch.write_bytes("view.json", text));
    return read.ok() ? std::string() : to_string(read.problems());
  };
  EXPECT_THAT(said("{"), testing::HasSubstr("view.json:1"));
  EXPECT_THAT(said("{\"schema\": \"shardwise.view/1\", \"width\": -5}"),
              testing::HasSubstr("/width"));
  EXPECT_THAT(said("{\"schema\": \"shardwise.view/1\", \"workspace\": \"attic\"}"),
              testing::HasSubstr("/workspace"));
  EXPECT_THAT(said("{\"schema\": \"shardwise.view/1\", \"panels\": \"DockNode\\n\"}"),
              testing::HasSubstr("/panels"));
}

}  // namespace
}  // namespace shardwise::view
