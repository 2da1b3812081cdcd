// A plan.json of version 1 keeps meaning what it meant: tests/golden/plan.json was written by the
// first release and is never written anew. A key may join the format; one that goes, or a value
// that is read as another, needs version 2, unless no version ever read it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "planner/legality/legality.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan.h"
#include "tests/planner/search/reread.h"

namespace shardwise {
namespace {

constexpr const char* kGolden = "tests/golden/plan.json";

/// Of an engine: written by the first release, without effect on any answer.
constexpr const char* kNeverRead = "gathers_ahead";

std::string golden_text() { return *read_file(kGolden); }

/// Every member of `old` is in `now` with the same value.
void expect_kept(const nlohmann::json& old, const nlohmann::json& now, const std::string& path) {
  if (old.is_object()) {
    for (const auto& [key, value] : old.items()) {
      if (key == kNeverRead) continue;
      ASSERT_TRUE(now.contains(key)) << path << "/" << key;
      expect_kept(value, now.at(key), fmt::format("{}/{}", path, key));
    }
  } else if (old.is_array()) {
    ASSERT_EQ(old.size(), now.size()) << path;
    for (std::size_t i = 0; i < old.size(); ++i) {
      expect_kept(old[i], now[i], path + "/" + std::to_string(i));
    }
  } else {
    EXPECT_EQ(old, now) << path;
  }
}

TEST(GoldenPlan, IsReadAndWrittenWithEveryValueItHad) {
  const Result<Plan> plan = read_plan(kGolden);
  ASSERT_TRUE(plan.ok()) << to_string(plan.problems());
  EXPECT_EQ(plan->model.name, "gpt2-tiny");
  EXPECT_EQ(plan->cluster.gpus, 1);
  EXPECT_EQ(plan->engine.name, "megatron_ddp");
  EXPECT_EQ(plan->job.sequence_length, 128);
  EXPECT_EQ(plan->job.global_batch_size, 4);
  EXPECT_EQ(plan->layout.world(), 1);
  EXPECT_TRUE(is_legal(plan->model, plan->cluster, plan->job, plan->engine, plan->layout));
  const std::string written = to_json(*plan);
  expect_kept(nlohmann::json::parse(golden_text()), nlohmann::json::parse(written), "");
  const Result<Plan> again = reread(written);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_EQ(digest(*again), digest(*plan));
}

/// What the reader says about the golden plan with one text in the place of another.
std::string said_after(const std::string& from, const std::string& to) {
  std::string text = golden_text();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const Result<Plan> plan = reread(text);
  return plan.ok() ? "read" : to_string(plan.problems());
}

TEST(GoldenPlan, IsRefusedWithThePlaceWhenSomebodyAlteredIt) {
  EXPECT_EQ(said_after("shardwise.plan/1", "shardwise.plan/7"),
            "plan.json:2:13: /schema: expected \"shardwise.plan/1\", found \"shardwise.plan/7\"\n"
            "1 problem, nothing was run\n");
  EXPECT_EQ(said_after("\"tp\": 1", "\"tp\": 0"),
            "plan.json:4:11: /layout/tp: 0 is too small\n"
            "    use 1 to 4194304\n1 problem, nothing was run\n");
  EXPECT_EQ(said_after("\"tp\": 1", "\"tp\": \"one\""),
            "plan.json:4:11: /layout/tp: expected an integer, found \"one\"\n"
            "    use 1 to 4194304\n1 problem, nothing was run\n");
  EXPECT_EQ(said_after("\"zero_stage\"", "\"zero_stagee\""),
            "plan.json:15:20: /layout/zero_stagee: unknown field\n"
            "    did you mean zero_stage?\n1 problem, nothing was run\n");
  EXPECT_EQ(said_after("\"recompute\": \"none\"", "\"recompute\": \"nonne\""),
            "plan.json:26:18: /layout/recompute: \"nonne\" is not one of the choices\n"
            "    did you mean none?\n1 problem, nothing was run\n");
}

TEST(GoldenPlan, IsTheSameWhateverWasWrittenOfWhatIsNeverRead) {
  std::string text = golden_text();
  const std::string key = "\"" + std::string(kNeverRead) + "\": 1";
  text.replace(text.find(key), key.size(), "\"" + std::string(kNeverRead) + "\": 3");
  const Result<Plan> other = reread(text);
  ASSERT_TRUE(other.ok()) << to_string(other.problems());
  EXPECT_EQ(digest(*other), digest(*read_plan(kGolden)));
}

// Wherever a plan ends too early, that is one problem at the place where reading stopped.
TEST(GoldenPlan, IsRefusedWhenItIsCutOff) {
  const std::string whole = golden_text();
  for (std::size_t length = 0; length + 2 < whole.size(); length += 509) {
    const Result<Plan> plan = reread(whole.substr(0, length));
    ASSERT_FALSE(plan.ok()) << length;
    EXPECT_EQ(plan.problems().size(), 1U) << length;
    EXPECT_FALSE(plan.problems().front().message.empty()) << length;
  }
}

}  // namespace
}  // namespace shardwise
