#include "planner/spec/text/table.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(Table, AlignsNumbersToTheRightAndLeavesNoTrailingSpace) {
  Table table({{"category", Align::left}, {"GiB"}});
  table.row({"weights", "14.96"});
  table.row({"moments", "7.48"});
  table.rule();
  table.row({"sum", "22.44"});
  EXPECT_EQ(table.text(false),
            "category    GiB\n"
            "────────  ─────\n"
            "weights   14.96\n"
            "moments    7.48\n"
            "────────  ─────\n"
            "sum       22.44\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.row({"µs", "a"});
  table.row({"s", "b"});
  EXPECT_EQ(table.text(false), "µs  a\ns   b\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  Table table({{"", Align::left}, {""}});
  table.row({"verdict", Cell("fits", Tone::good)});
  EXPECT_EQ(table.text(false), "verdict  fits\n");
  EXPECT_EQ(table.text(true), "verdict  \x1b[32mfits\x1b[0m\n");
}

TEST(Table, IndentsEveryLineAndFillsMissingCells) {
  Table table({{"a", Align::left}, {"b"}});
  table.row({"x"});
  EXPECT_EQ(table.text(false, 2), "  a  b\n  ─  ─\n  x\n");
}

TEST(Wrap, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(wrap("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrap("unbreakable words", 5), "unbreakable\nwords");
  EXPECT_EQ(wrap("in a/path/too/long", 8, 2), "in\n  a/\n  path/\n  too/\n  long");
  EXPECT_EQ(wrap("", 10), "");
}

}  // namespace
}  // namespace shardwise
