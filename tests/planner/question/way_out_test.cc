// What `fits` says to change, typed as it says, fits.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "planner/question/asked_fits.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

/// "qwen2.5-7b --gpu rtx-5090 --tp=2 --adamw paged" as a question.
AskedFits with_words(AskedFits asked, const std::string& words) {
  const std::vector<std::string> layout = layout_keys();
  std::istringstream text(words);
  for (std::string word; text >> word;) {
    if (!word.starts_with("--")) {
      if (asked.job.model.empty()) asked.job.model = word;
      continue;  // "then"
    }
    std::string value;
    const auto at = word.find('=');
    if (at == std::string::npos) {
      text >> value;
    } else {
      value = word.substr(at + 1);
    }
    while (value.ends_with(',') || value.ends_with(':')) value.pop_back();
    std::string key = word.substr(2, at == std::string::npos ? at : at - 2);
    std::ranges::replace(key, '-', '_');
    if (key == "gpu") {
      asked.gpu = value;
    } else if (key == "gpus") {
      asked.job.gpus = value;
    } else if (key == "engine") {
      asked.job.engine = value;
    } else if (std::ranges::find(layout, key) != layout.end()) {
      asked.layout.texts[key] = value;
    } else {
      asked.job.texts[key] = value;
    }
  }
  return asked;
}

/// The words before the figures of a change: "--tp=2 --dp-shard=4" of "…: 25.8 GiB, 569 s a step".
std::string typed(const std::string& change) { return change.substr(0, change.find(": ")); }

class WayOut : public testing::TestWithParam<const char*> {};

TEST_P(WayOut, FitsWhenItIsTyped) {
  const AskedFits asked = with_words({}, GetParam());
  const Result<EstimateAnswer> before = answer_fits(asked);
  ASSERT_TRUE(before.ok()) << to_string(before.problems());
  ASSERT_NE(before->report.verdict.fit, Fit::fits);
  const std::string& change = before->report.verdict.cheapest_fix;
  ASSERT_NE(change, "");
  const AskedFits changed = with_words(asked, typed(change));
  const Result<EstimateAnswer> after = answer_fits(changed);
  ASSERT_TRUE(after.ok()) << change << "\n" << to_string(after.problems());
  EXPECT_EQ(after->report.verdict.fit, Fit::fits) << change;
}

INSTANTIATE_TEST_SUITE_P(
    Questions, WayOut,
    testing::Values("qwen2.5-7b --gpu rtx-5090 --gpus 8 --recompute full --sequence-length 2048",
                    "qwen2.5-7b --gpu rtx-5090 --gpus 8 --sequence-length 2048",
                    "llama-2-7b --gpu rtx-3090 --gpus 4 --engine deepspeed"));

}  // namespace
}  // namespace shardwise
