// The viewer, the command and the report say the same of one question, to the last digit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gui/models/session/session.h"
#include "gui/models/window/summary_model.h"
#include "planner/legality/legality.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/format.h"
#include "simulator/comparison/tiles.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

using test::built;
using test::bytes_of_file;
using test::run_program;
using testing::HasSubstr;

class SameDigits : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override {
    std::vector<std::string> arguments = {"plan", "-o", plan_};
    arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
    const test::Outcome planned = run_program(built("shardwise"), arguments);
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    said_ = planned.out;
    const test::Outcome written =
        run_program(built("shardwise"), {"simulate", plan_, "-o", report_});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const test::Outcome paged =
        run_program(built("shardwise"), {"report", plan_, "--top", "1", "-o", page_});
    ASSERT_EQ(paged.exit_code, 0) << paged.err;
  }

  test::Scratch scratch_;
  const std::string plan_ = scratch_.path("plan.json");
  const std::string report_ = scratch_.path("report.json");
  const std::string page_ = scratch_.path("report.html");
  std::string said_;
};

TEST_P(SameDigits, InViewerCommandAndReport) {
  Result<Plan> plan = read_plan(plan_, check_plan);
  ASSERT_TRUE(plan);
  Session session(*plan, Timing::fitting);
  session.settle();
  ASSERT_NE(session.state().simulated, nullptr);
  const StepReport& shown = session.state().best_report();

  // The numbers themselves.
  const Result<StepReport> simulated = read_report(report_);
  ASSERT_TRUE(simulated);
  EXPECT_EQ(shown.step_time, simulated->step_time);
  EXPECT_EQ(shown.verdict.point, simulated->verdict.point);
  EXPECT_EQ(shown.verdict.upper, simulated->verdict.upper);
  EXPECT_EQ(shown.mfu, simulated->mfu);
  EXPECT_EQ(shown.tokens_per_s, simulated->tokens_per_s);
  EXPECT_EQ(shown.dollars_per_1e9_tokens, simulated->dollars_per_1e9_tokens);

  // What people read: the tiles of the page are the viewer's, and the command says them too.
  const std::string page = bytes_of_file(page_);
  for (const sim::Tile& tile : sim::tiles(*plan, shown, nullptr)) {
    const std::size_t at = page.find(fmt::format("id=\"tile-{}\"", tile.id));
    ASSERT_NE(at, std::string::npos) << tile.id;
    EXPECT_THAT(page.substr(at, page.find('\n', at) - at), HasSubstr(">" + tile.value + "</dd>"));
  }
  for (const Tile& tile : summary_tiles(*plan, shown)) {
    EXPECT_THAT(page, HasSubstr(">" + tile.value)) << tile.id;
  }
  EXPECT_THAT(said_, HasSubstr(format_seconds(shown.step_time) + " a step"));
  EXPECT_THAT(said_, HasSubstr("MFU " + format_percent(shown.mfu)));
  EXPECT_THAT(said_, HasSubstr("simulated: " + format_scaled(shown.tokens_per_s) + " tokens"));
  EXPECT_THAT(said_, HasSubstr(format_bytes(shown.verdict.point) + " of"));
  EXPECT_THAT(said_, HasSubstr(format_dollars(shown.dollars_per_1e9_tokens) + " per 1e9 tokens"));
}

INSTANTIATE_TEST_SUITE_P(
    Questions, SameDigits,
    testing::Values(std::vector<std::string>{"--model", "gpt2-xl", "--cluster", "dgx-h100",
                                             "--gpus", "8", "--global-batch-size", "64"},
                    std::vector<std::string>{"--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                             "--gpus", "16", "--engine", "fsdp2",
                                             "--global-batch-size", "64"},
                    std::vector<std::string>{"--model", "llama-3.1-70b", "--cluster", "dgx-h100",
                                             "--gpus", "64", "--engine", "megatron_ddp", "--lock",
                                             "pp=8", "--global-batch-size", "64"}));

}  // namespace
}  // namespace shardwise::view
