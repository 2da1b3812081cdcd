#include "planner/spec/report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/report/report_fields.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

/// A report in which every field differs from its default.
StepReport full_report() {
  StepReport r;
  r.origin = "measured";
  r.plan_digest = "9f86d081";
  r.model = "llama-3.1-8b";
  r.cluster = "dgx-h100";
  r.engine = "fsdp2";
  r.layout.tp = 4;
  r.layout.pp = 2;
  r.layout.recompute = Recompute::full;
  r.global_batch_size = 64;
  r.sequence_length = 8192;
  r.num_microbatches = 4;
  StageMemory stage;
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      stage.phases[p].bytes[c] = static_cast<std::int64_t>(1000 * p + c + 1);
    }
  }
  r.stages = {stage, stage};
  r.stage_upper = {1_GiB, 2_GiB};
  r.verdict = {{66_GiB, 70_GiB, 82_GiB, 1_GiB},
               Fit::at_risk,
               1,
               MemoryPhase::first_optimizer_step,
               3_GiB,
               2_GiB,
               80_GiB,
               "--tp 8"};
  double seconds = 0.125;
  for (const TimePart& part : kTimeParts) r.time.*part.field = Seconds(seconds *= 1.1);
  r.compute = {Seconds(1), Seconds(2), Seconds(3)};
  r.by_axis = {{"tp", Seconds(2), Seconds(1)}};
  r.step_time = r.time.total();
  r.mfu = 0.4;
  r.mfu_non_causal = 0.45;
  r.hfu = 0.5;
  r.model_flops = Flops(1e18);
  r.flops_formula = "6 N T";
  r.tokens_per_s = 1e5;
  r.tokens_per_s_per_gpu = 1.25e4;
  r.dollars_per_1e9_tokens = 321.5;
  r.joules_per_token = 0.06;
  r.checkpoint_write = Seconds(12);
  r.checkpoint_bytes = 96_GB;
  r.process_growth = 6_GB;
  r.arena = 5_GB;
  r.device_used_at_start = 1_GB;
  r.device_used = 7_GB;
  r.assumptions = {{"curve", "text", "source"}};
  r.explanations = {{"time.bubble", "(p-1)/m", "3/8", "docs/time.md"}};
  r.gemms = {{"block", "self_attn.q_proj", "forward", DType::fp8, 8, 1, 2, 3, Seconds(1e-5),
              GemmBasis::measured}};
  StageTimeline one;
  one.stage = 1;
  one.computing = Seconds(0.5);
  one.idle = Seconds(0.25);
  one.streams = {{"all_gather", 3, Seconds(0.4), Seconds(0.1)}};
  one.links = {{"efa", 2, 5_GB, 10_GB, Seconds(0.8), 0.5}};
  one.memory = {{Seconds(0.1), 3_GiB, 4_GiB}};
  one.peak_at = Seconds(0.1);
  one.at_peak = {{MemoryCategory::activations, 7, 2, 1_GiB}};
  StepTimeline timeline;
  timeline.critical_path = Seconds(0.7);
  timeline.overlap = 0.75;
  timeline.stages = {one};
  timeline.operations = {{"fwd.layer0", 1, "compute", 4, Seconds(0.2), Seconds(0.1)}};
  timeline.noise = {100, 42, 3, 256, Seconds(1), Seconds(2), 0.9};
  r.timeline = timeline;
  r.closed_form = {Seconds(3), r.time, {{"shared links", Seconds(0), Seconds(0.25)}}};
  return r;
}

TEST(ReportJson, ReadsBackAsItWasWritten) {
  const StepReport report = full_report();
  const std::string text = report_json(report);
  const Result<StepReport> read = report_from_text(text, "report.json");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_EQ(report_json(*read), text);
  EXPECT_EQ(read->layout, report.layout);
  EXPECT_EQ(read->step_time, report.step_time);
  EXPECT_EQ(read->stages[1].peak_total(), report.stages[1].peak_total());
  EXPECT_EQ(read->verdict.cheapest_fix, "--tp 8");
  EXPECT_EQ(read->verdict.needed, 66_GiB);
  EXPECT_EQ(read->verdict.host, 3_GiB);
  EXPECT_EQ(read->verdict.host_lacks, 1_GiB);
}

TEST(ReportJson, CarriesTheUnitInEveryKey) {
  const std::string text = report_json(full_report());
  for (const char* key : {"\"schema\": \"shardwise.report/1\"", "\"point_bytes\": 75161927680",
                          "\"weights_bytes\": 1,", "\"bubble_s\":", "\"step_time_s\":",
                          "\"phase\": \"steady_forward_backward\"", "\"fit\": \"at_risk\""}) {
    EXPECT_THAT(text, HasSubstr(key));
  }
}

TEST(ReportJson, ListsEveryPartOfTheStepOnce) {
  TimeParts parts;
  for (const TimePart& part : kTimeParts) {
    EXPECT_EQ(parts.*part.field, Seconds(0)) << part.key;
    parts.*part.field = Seconds(1);
  }
  EXPECT_EQ(parts.total(), Seconds(static_cast<double>(kTimeParts.size())));
  EXPECT_EQ(sizeof(TimeParts), kTimeParts.size() * sizeof(Seconds));
}

// tests/invalid/report has what is refused: this is what need not be there.
TEST(ReportJson, ReadsAReportWithoutAClock) {
  StepReport report = full_report();
  report.origin = "predicted";
  report.timeline.reset();
  report.closed_form.reset();
  const Result<StepReport> read = report_from_text(report_json(report), "report.json");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  EXPECT_FALSE(read->timeline.has_value());
}

TEST(ReportJson, RefusesWhatIsNotAReport) {
  const auto problem = [](const std::string& text) {
    const Result<StepReport> read = report_from_text(text, "r.json");
    return read.ok() ? std::string() : to_string(read.problems());
  };
  EXPECT_THAT(problem("{\"schema\": \"shardwise.plan/1\"}"), HasSubstr("/schema"));
  std::string text = report_json(full_report());
  text.replace(text.find("\"measured\""), 10, "\"imagined\"");
  EXPECT_THAT(problem(text), HasSubstr("/origin: is neither predicted nor measured"));
  text = report_json(full_report());
  text.replace(text.find("\"mfu\""), 5, "\"muf\"");
  EXPECT_THAT(problem(text), HasSubstr("did you mean mfu?"));
}

TEST(ReportJson, RefusesAStageThatTheLayoutHasNot) {
  StepReport report = full_report();
  ASSERT_TRUE(report.timeline.has_value());
  ASSERT_FALSE(report.timeline->operations.empty());
  report.timeline->operations.back().stage = 99;
  const Result<StepReport> read = report_from_text(report_json(report), "r.json");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(to_string(read.problems()), HasSubstr("/timeline: operation "));
  EXPECT_THAT(to_string(read.problems()), HasSubstr("is of stage 99, but the layout has "));
}

// They follow from engine and GPU, so that they are written for whoever reads the file.
TEST(ReportJson, TakesIntervalsAndDoesNotReadThem) {
  const StepReport report = full_report();
  ReportIntervals known;
  known.step = {0.5, 2, 40, 5, "pytorch", "hopper"};
  known.allocated = {0.9, 1.1, 41, 6, "", ""};
  const std::string text = report_json(report, {}, known);
  EXPECT_THAT(text, HasSubstr("\"low_factor\": 0.5"));
  EXPECT_THAT(text, HasSubstr("\"high_bytes\""));
  const Result<StepReport> read = report_from_text(text, "report.json");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(report_json(*read), report_json(report));
}

}  // namespace
}  // namespace shardwise
