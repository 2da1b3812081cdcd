#include "planner/spec/text/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwise {
namespace {

using testing::ElementsAre;

std::string problems_of(std::string_view text) {
  const Result<CsvTable> table = parse_csv(text, "t.csv");
  return table.ok() ? "" : to_string(table.problems());
}

TEST(ParseCsv, NamesColumnsAndKeepsTheLineOfEachRow) {
  const Result<CsvTable> table = parse_csv("op,bytes\nall_gather,512\n\nbroadcast,\n", "t.csv");
  ASSERT_TRUE(table.ok()) << to_string(table.problems());
  EXPECT_THAT(table->columns, ElementsAre("op", "bytes"));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_THAT(table->rows[1].cells, ElementsAre("broadcast", ""));
  EXPECT_EQ(table->rows[1].line, 4);
  EXPECT_EQ(table->column("bytes"), 1U);
  EXPECT_EQ(table->column("Bytes"), std::nullopt);
}

TEST(ParseCsv, ReadsQuotesCarriageReturnsAndTheByteOrderMark) {
  const Result<CsvTable> table =
      parse_csv("\xEF\xBB\xBFwho,what\r\n\"a, b\",\"say \"\"x\"\"\ntwice\"\r\nc,d", "t.csv");
  ASSERT_TRUE(table.ok()) << to_string(table.problems());
  EXPECT_THAT(table->columns, ElementsAre("who", "what"));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_THAT(table->rows[0].cells, ElementsAre("a, b", "say \"x\"\ntwice"));
  EXPECT_THAT(table->rows[1].cells, ElementsAre("c", "d"));
  EXPECT_EQ(table->rows[1].line, 4);
}

TEST(ParseCsv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(problems_of(""),
            "t.csv: empty\n"
            "    the first line names the columns\n"
            "1 problem, nothing was run\n");
  EXPECT_EQ(problems_of("a,b,a\n"),
            "t.csv:1: two columns are named a\n1 problem, nothing was run\n");
  EXPECT_EQ(problems_of("a,b\n1,2\n3\n"),
            "t.csv:3: 1 cells, but there are 2 columns\n1 problem, nothing was run\n");
  EXPECT_EQ(problems_of("a,b\n1,\"2\n"),
            "t.csv:2: a quote is not closed\n1 problem, nothing was run\n");
  EXPECT_EQ(problems_of("a\n\xFF\n"), "t.csv: not UTF-8 text\n1 problem, nothing was run\n");
}

}  // namespace
}  // namespace shardwise
