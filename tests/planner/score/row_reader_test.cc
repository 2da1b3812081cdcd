#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/score/rows/row.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

// The smallest row: everything a source may leave out is left out.
constexpr const char* kBare =
    R"({"id": "a/1", "model": {}, "hardware": {}, "parallel": {}, "batch": {}, "measured": {}, "quality": "A"})";

TEST(ReadRows, TakesARowThatSaysNothing) {
  const auto rows = read_rows(kBare, "m.jsonl");
  ASSERT_TRUE(rows) << to_string(rows.problems());
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().source(), "a");
  EXPECT_EQ(rows->front().line, 1);
  EXPECT_FALSE(rows->front().model.layers);
  EXPECT_FALSE(rows->front().measured.oom);
}

TEST(ReadRows, ReadsWhatTheRowSays) {
  const std::string text = R"({"id": "s/x/y", "source": {"repo": "r"}, "framework": "torchtitan",
 "model": {"layers": 2, "hidden": 64.0, "moe": {"experts": 8, "topk": 2, "ffn": 32}},
 "hardware": {"gpu": "H100", "gpus": 8}, "parallel": {"sp": "ulysses 4", "hsdp": {"shard": 4, "replicate": 2}},
 "batch": {"micro": 1}, "flags": {"overlap-grad-reduce": true, "compile": false, "unknown": [1]},
 "measured": {"memory_gib": 3, "memory_other": {"reserved_gib": 4.5}, "oom": false}, "quality": "B"})";
  std::string line = text;
  std::erase(line, '\n');
  const auto rows = read_rows(line, "m.jsonl");
  ASSERT_TRUE(rows) << to_string(rows.problems());
  const Row& row = rows->front();
  EXPECT_EQ(row.model.hidden, 64);
  EXPECT_EQ(row.model.moe->topk, 2);
  EXPECT_EQ(row.parallel.sequence_wording, "ulysses 4");
  EXPECT_EQ(row.parallel.hsdp_replicate, 2);
  EXPECT_TRUE(row.flag_on("overlap_grad_reduce"));
  EXPECT_TRUE(row.flag_off("compile"));
  EXPECT_EQ(row.measured.memory_gib, 3);
  EXPECT_EQ(row.measured.reserved_gib, 4.5);
}

TEST(ReadRows, PassesOverBlankLinesAndCarriageReturns) {
  const std::string text = std::string("\xEF\xBB\xBF\n") + kBare + "\r\n\n  \n";
  const auto rows = read_rows(text, "m.jsonl");
  ASSERT_TRUE(rows) << to_string(rows.problems());
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().line, 2);
}

TEST(ReadRows, ReportsEveryProblemWithItsLineAndPlace) {
  const std::string text =
      std::string(kBare) +
      "\n{\"id\": 7, \"model\": {\"layers\": -1}, \"hardware\": {}, \"parallel\": {}, \"batch\": "
      "{}, "
      "\"measured\": {\"step_time_s\": \"fast\"}, \"quality\": \"A\"}\n{\"id\": \"trunc\n";
  const auto rows = read_rows(text, "m.jsonl");
  ASSERT_FALSE(rows);
  EXPECT_THAT(
      rows.problems(),
      ElementsAre(
          AllOf(Field(&Diagnostic::line, 2), Field(&Diagnostic::path, "/id")),
          AllOf(Field(&Diagnostic::line, 2), Field(&Diagnostic::path, "/model/layers"),
                Field(&Diagnostic::message, HasSubstr("-1 is too small"))),
          AllOf(Field(&Diagnostic::line, 2), Field(&Diagnostic::path, "/measured/step_time_s")),
          AllOf(Field(&Diagnostic::line, 3), Field(&Diagnostic::file, "m.jsonl"))));
}

TEST(ReadRows, RefusesTheSameIdTwice) {
  const auto rows = read_rows(std::string(kBare) + "\n" + kBare, "m.jsonl");
  ASSERT_FALSE(rows);
  ASSERT_EQ(rows.problems().size(), 1U);
  EXPECT_EQ(rows.problems().front().line, 2);
  EXPECT_THAT(rows.problems().front().message, HasSubstr("line 1"));
}

}  // namespace
}  // namespace shardwise
