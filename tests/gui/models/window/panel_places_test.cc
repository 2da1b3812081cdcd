#include "gui/models/window/panel_places.h"

#include <gtest/gtest.h>

#include <string>

namespace shardwise::view {
namespace {

constexpr const char* kDockedPanel =
    "[Window][explorer.explore]\nPos=-10,20\nSize=300,400\nCollapsed=0\n"
    "DockId=0x00000002,0\n\n[Docking][Data]\n"
    "DockSpace   ID=0x0BADCAFE Window=0x54E12AAF Pos=0,0 Size=9,9 Split=X\n"
    "  DockNode  ID=0x00000002 Parent=0x0BADCAFE SizeRef=4,9 CentralNode=1 HiddenTabBar=1 "
    "Selected=0x9C2983BB\n"
    "  DockNode  ID=0x00000003 Parent=0x0BADCAFE SizeRef=5,9\n\n";

std::string problem_with(const std::string& from, const std::string& to) {
  std::string text = kDockedPanel;
  return problem_of_panels(text.replace(text.find(from), from.size(), to));
}

TEST(PanelPlaces, AreTakenAsTheyWereWritten) {
  EXPECT_EQ(problem_of_panels(kDockedPanel), "");
  EXPECT_EQ(problem_of_panels(""), "");
  EXPECT_EQ(problem_with(" Split=X", " Split=Y"), "");
  EXPECT_EQ(problem_with("DockId=0x00000002,0", "DockId=0x00000002"), "");
}

TEST(PanelPlaces, RefuseADockThatIsCutAlongNoAxis) {
  for (const char* axis : {"Z", "1", "Q", "", "x", "XY", "X,0.5"}) {
    EXPECT_NE(problem_with(" Split=X", std::string(" Split=") + axis), "") << axis;
  }
}

TEST(PanelPlaces, RefuseTreesOfDocksThatAreNone) {
  const std::string last = "  DockNode  ID=0x00000003 Parent=0x0BADCAFE SizeRef=5,9\n";
  EXPECT_NE(problem_with("ID=0x00000003", "ID=0x00000002"), "");  // twice
  EXPECT_NE(problem_with("Parent=0x0BADCAFE SizeRef=5", "Parent=0x00000007 SizeRef=5"), "");
  EXPECT_NE(problem_with("Parent=0x0BADCAFE SizeRef=5", "Parent=0x00000003 SizeRef=5"), "");
  EXPECT_NE(problem_with("Parent=0x0BADCAFE SizeRef=5", "Parent=0x00000002 SizeRef=5"), "");
  EXPECT_NE(problem_with(last, ""), "");
  EXPECT_NE(problem_with(last, last + last), "");
  EXPECT_NE(problem_with(" Split=X", ""), "");
  EXPECT_NE(problem_with("SizeRef=5,9", "SizeRef=5,9 CentralNode=1"), "");  // a second one
  EXPECT_NE(problem_with(" Split=X", " Split=X CentralNode=1"), "");        // that is cut
  EXPECT_NE(problem_with("DockNode  ID=0x00000003", "DockNode  ID=0x1E9E0D55"), "");  // a space's
  EXPECT_NE(problem_with("DockSpace   ID", "DockNode   ID"), "");
  EXPECT_NE(problem_with("DockNode  ID=0x00000003", "DockSpace ID=0x1E9E0D55"), "");  // inside one
  EXPECT_NE(problem_with("ID=0x00000003", "ID=0x00000000"), "");
}

TEST(PanelPlaces, RefuseAPanelInADockThatThereIsNot) {
  EXPECT_NE(problem_with("DockId=0x00000002,0", "DockId=0x0000000B,0"), "");
  EXPECT_EQ(problem_with("DockId=0x00000002,0", "DockId=0x00000003,0"), "");
  EXPECT_EQ(problem_with("DockId=0x00000002,0", "DockId=0x00000000"), "");  // in none
}

TEST(PanelPlaces, RefuseDocksDeeperThanAWindowHas) {
  std::string text = "[Docking][Data]\nDockSpace ID=0x0BADCAFE Pos=0,0 Size=9,9";
  const auto hex = [](int number) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    return std::string("0x000000") + kDigits[number / 16] + kDigits[number % 16];
  };
  std::string parent = "0x0BADCAFE";
  for (int depth = 0; depth < 40; ++depth) {
    text += " Split=X\nDockNode ID=" + hex(2 * depth + 1) + " Parent=" + parent + " SizeRef=1,1";
    text += "\nDockNode ID=" + hex(2 * depth + 2) + " Parent=" + parent + " SizeRef=1,1";
    parent = hex(2 * depth + 2);
    const std::string problem = problem_of_panels(text + "\n");
    EXPECT_EQ(problem.empty(), depth < 32) << depth << problem;
  }
}

TEST(PanelPlaces, RefuseNumbersThatNoWindowHas) {
  for (const char* size : {"-1,5", "5", "5,", "a,5", "0x5,5", "99999,5", "5,5,5", "5,5 "}) {
    EXPECT_NE(problem_with("Size=300,400", std::string("Size=") + size), "") << size;
    EXPECT_NE(problem_with("SizeRef=5,9", std::string("SizeRef=") + size), "") << size;
  }
  EXPECT_NE(problem_with("Collapsed=0", "Collapsed=2"), "");
  for (const char* id : {"2", "0x2", "0x000000020", "0xG0000002", "0x00000002,-1", "0x00000002,"}) {
    EXPECT_NE(problem_with("DockId=0x00000002,0", std::string("DockId=") + id), "") << id;
  }
}

TEST(PanelPlaces, RefuseLinesOfAnythingElse) {
  const std::string panels = kDockedPanel;
  EXPECT_NE(problem_of_panels(panels + "Execute=rm\n"), "");
  EXPECT_NE(problem_of_panels("Pos=1,1\n"), "");  // of no window
  EXPECT_NE(problem_of_panels(panels + panels), "");
  EXPECT_NE(problem_of_panels("[Window][a\x01]\n"), "");
  EXPECT_NE(problem_of_panels("[Window][]\n"), "");
  EXPECT_NE(problem_of_panels("[Table][0x12345678,3]\n"), "");
  EXPECT_NE(problem_of_panels(std::string(1 << 19, '\n')), "");
}

TEST(PanelPlaces, AreLeftOfSettingsWithoutDaysAndTables) {
  EXPECT_EQ(places_of_panels(kDockedPanel), kDockedPanel);
  EXPECT_EQ(places_of_panels("[Window][a]\nPos=1,1\nLastUsed=20260101\n\n[Table][0x1,2]\nColumn 0\n"
                             "\n[Docking][Data]\nDockSpace ID=0x0BADCAFE Pos=0,0 Size=9,9\n"),
            "[Window][a]\nPos=1,1\n\n[Docking][Data]\nDockSpace ID=0x0BADCAFE Pos=0,0 Size=9,9\n");
}

}  // namespace
}  // namespace shardwise::view
