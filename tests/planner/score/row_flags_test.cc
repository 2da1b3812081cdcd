#include "planner/score/rows/row_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include "planner/score/rows/row_engine.h"
#include "planner/score/rows/row_job.h"
#include "planner/score/rows/row_layout.h"
#include "planner/spec/json/reader.h"
#include "tests/planner/score/rows.h"

namespace shardwise {
namespace {

/// Names of flags that the sources of the score ask a row for.
std::set<std::string> asked_for() {
  const std::regex asked("flag(_on|_off|_text)?\\(\"([a-z0-9_]+)\"\\)");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("planner/score")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = *read_file(entry.path().string());
    for (std::sregex_iterator at(text.begin(), text.end(), asked), end; at != end; ++at) {
      names.insert((*at)[2]);
    }
  }
  return names;
}

TEST(RowFlags, AreThoseThatTheSourcesAskFor) {
  const std::vector<std::string_view> listed = read_flags();
  EXPECT_EQ(asked_for(), std::set<std::string>(listed.begin(), listed.end()));
  for (const std::string_view flag : listed) EXPECT_EQ(why_unread(flag), "not known") << flag;
}

// A flag that nobody has met must be read, or have a reason why not.
TEST(RowFlags, OfPublicRowsAreReadOrHaveAReason) {
  const std::string file = "examples/public.jsonl";
  const Result<std::vector<Row>> rows = read_rows(*read_file(file), file);
  ASSERT_TRUE(rows);
  for (const FlagUnread& each : unread_flags(*rows)) {
    EXPECT_NE(each.why, "not known") << each.flag << " of " << each.rows << " rows";
  }
}

TEST(RowFlags, ThatNobodyHasMetAreListed) {
  Row row = test::llama_row();
  test::set_flag(row, "warp_drive", true);
  test::set_flag(row, "compile", true);
  const std::vector<FlagUnread> unread = unread_flags(std::vector<Row>{row, row});
  ASSERT_EQ(unread.size(), 1U);
  EXPECT_EQ(unread.front().flag, "warp_drive");
  EXPECT_EQ(unread.front().rows, 2U);
  EXPECT_EQ(unread.front().why, "not known");
}

// mlcommons/training_results_v5.1: NeMo's fp8_params, fp8_activation_input_store and
// fp8_dot_product_attention.
TEST(RowFlags, KeepFrozenWeightsAndSavedTensorsInTheEightBitsThatAreStated) {
  Row row = test::megatron_row();
  row.task = "lora";
  row.precision = "FP8 delayed (TE hybrid), fp8 base weights";
  const auto job_of_row = [&] {
    Notes notes;
    const std::optional<RowEngine> engine = engine_of(row, notes);
    const std::optional<Layout> layout = layout_of(row, *engine, notes);
    return job_of(row, *engine, *layout, notes)->variants.front().job;
  };
  EXPECT_TRUE(job_of_row().fp8_parameter_gather);
  EXPECT_EQ(job_of_row().saved_activation_inputs, SavedFormat::as_computed);
  EXPECT_EQ(job_of_row().saved_attention_outputs, SavedFormat::as_computed);
  test::set_flag(row, "fp8_activation_input_store", true);
  test::set_flag(row, "fp8_attention", true);
  EXPECT_EQ(job_of_row().saved_activation_inputs, SavedFormat::fp8);
  EXPECT_EQ(job_of_row().saved_attention_outputs, SavedFormat::fp8);
  row.precision = "FP8 delayed (TE hybrid)";
  EXPECT_FALSE(job_of_row().fp8_parameter_gather);
}

}  // namespace
}  // namespace shardwise
