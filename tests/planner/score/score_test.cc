#include "planner/score/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/score/predict.h"
#include "planner/score/score_json.h"
#include "planner/score/score_text.h"
#include "planner/spec/json/reader.h"
#include "tests/planner/score/rows.h"

namespace shardwise {
namespace {

using test::llama_row;
using test::megatron_row;
using test::set_flag;
using testing::HasSubstr;

std::vector<Row> made_up() {
  const std::string file = "tests/golden/measurements_made_up.jsonl";
  auto rows = read_rows(*read_file(file), file);
  EXPECT_TRUE(rows) << to_string(rows.problems());
  return *rows;
}

std::string reason_for(const ScoreReport& report, std::string_view id) {
  for (const SkippedRow& row : report.skipped) {
    if (row.id == id) return row.reason;
  }
  return "not skipped";
}

TEST(Score, AccountsForEveryRow) {
  const ScoreReport report = score(made_up());
  ASSERT_EQ(report.figures.size(), 3U);
  EXPECT_EQ(report.figures[0].id, "made-up/fsdp2");
  EXPECT_EQ(report.figures[0].quantity, Scored::memory);
  EXPECT_EQ(report.figures[1].quantity, Scored::time);
  EXPECT_EQ(report.figures[2].id, "second/pipeline");
  EXPECT_THAT(reason_for(report, "second/pipeline"), HasSubstr("time: its source calls"));
  EXPECT_THAT(reason_for(report, "second/ratio"), HasSubstr("quality C"));
  EXPECT_EQ(reason_for(report, "second/unknown-gpu"), "GPU Abacus 9000 is not in the catalogue");
  EXPECT_THAT(reason_for(report, "made-up/out-of-memory"), HasSubstr("ran out of memory"));
}

TEST(Score, TurnsTokensPerSecondIntoAStep) {
  const ScoreReport report = score(made_up());
  // 8 sequences of 8,192 tokens on 8 GPUs at 6,000 tokens/s each.
  EXPECT_DOUBLE_EQ(report.figures[1].measured, 8192.0 / 6000);
}

TEST(Score, TakesStepTimesFromWhoeverItIsTold) {
  const ScoreReport usual = score(made_up());
  std::size_t asked = 0;
  std::vector<std::size_t> done;
  const ScoreReport twice = score(
      made_up(),
      [&](const Plan& plan, const StepReport& report) {
        EXPECT_EQ(plan.layout.world(), report.layout.world());
        ++asked;
        return 2 * report.step_time;
      },
      [&](std::size_t rows) { done.push_back(rows); });
  ASSERT_EQ(twice.figures.size(), usual.figures.size());
  for (std::size_t i = 0; i < usual.figures.size(); ++i) {
    const bool time = usual.figures[i].quantity == Scored::time;
    EXPECT_DOUBLE_EQ(twice.figures[i].predicted, usual.figures[i].predicted * (time ? 2 : 1));
  }
  EXPECT_EQ(asked, 1U);  // of the rows whose time is compared
  EXPECT_EQ(done.size(), made_up().size());
}

TEST(Score, JudgesEveryRunByTheVerdictsOwnRule) {
  const ScoreReport report = score(made_up());
  ASSERT_EQ(report.judged.size(), 3U);
  for (const JudgedRun& run : report.judged) {
    EXPECT_EQ(run.ran_out, run.id == "made-up/out-of-memory");
    EXPECT_EQ(run.fit == Fit::does_not_fit, run.needed_gib > run.usable_gib) << run.id;
    EXPECT_FALSE(run.wrong()) << run.id;
  }
  // 16 sequences of 8,192 tokens with nothing recomputed are far beyond 80 GB.
  EXPECT_THAT(reason_for(report, "made-up/out-of-memory"), HasSubstr("does_not_fit"));
}

TEST(Score, CountsVerdictsThatARunContradicts) {
  std::vector<Row> rows = made_up();
  for (Row& row : rows) row.measured.oom = !row.measured.oom;
  for (Row& row : rows) row.measured.step_time_s = 1;
  const ScoreReport report = score(rows);
  EXPECT_EQ(std::ranges::count_if(report.judged, &JudgedRun::wrong), 3);
  EXPECT_THAT(
      to_text(report, ScoreScreen::rows, /*colour=*/false),
      HasSubstr("wrong verdicts of 3 runs: 1 that ran \"does not fit\", 2 that ran out \"fits\""));
  JudgedRun close;
  close.fit = Fit::at_risk;
  EXPECT_FALSE(close.wrong());
  close.ran_out = true;
  EXPECT_FALSE(close.wrong());
}

TEST(Score, AveragesOverSourcesRatherThanRows) {
  ScoreReport report;
  const auto add = [&](const char* source, double predicted) {
    ScoredFigure& figure = report.figures.emplace_back();
    figure.id = figure.source = source;
    figure.quantity = Scored::time;
    figure.measured = 1;
    figure.predicted = predicted;
  };
  for (int i = 0; i < 9; ++i) add("many", 1.1);
  add("few", 0.7);
  summarise(report);
  ASSERT_EQ(report.sources.size(), 2U);
  EXPECT_NEAR(report.time.median_abs_error, (0.1 + 0.3) / 2, 1e-12);
  EXPECT_NEAR(report.time.bias, (0.1 - 0.3) / 2, 1e-12);
  EXPECT_EQ(report.time.rows, 10U);
  EXPECT_EQ(report.memory.sources, 0U);
}

TEST(Score, LooksAtTheRankThatTheSourceLookedAt) {
  Row row = megatron_row();
  row.measured.memory_gib = 1;
  row.measured.memory_kind = "peak_allocated (max over ranks)";
  RowPredictor predictor;
  const RowPrediction fullest = predictor.predict(row);
  ASSERT_TRUE(fullest.memory_gib) << fullest.notes.refused;
  row.measured.memory_kind = "peak_allocated of the LAST rank";
  const RowPrediction last = predictor.predict(row);
  const StepReport& report = last.reports.front();
  ASSERT_EQ(report.stages.size(), 2U);
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.value()) / (1 << 30); };
  EXPECT_DOUBLE_EQ(*last.memory_gib, gib(report.stages[1].peak_allocated()));
  EXPECT_DOUBLE_EQ(*fullest.memory_gib, std::max(gib(report.stages[0].peak_allocated()),
                                                 gib(report.stages[1].peak_allocated())));
}

TEST(PredictedMemory, CountsTheBytesThatTheSourceCounted) {
  using enum MemoryCategory;
  StepReport report;
  report.stages.resize(1);
  for (Ledger& ledger : report.stages.front().phases) {
    ledger[weights] = std::int64_t{1} << 30;
    ledger[activations] = std::int64_t{2} << 30;
    ledger[working] = std::int64_t{4} << 30;
    ledger[allocator_slack] = std::int64_t{8} << 30;
    ledger[runtime_context] = std::int64_t{16} << 30;
  }
  Row row = llama_row();
  const auto predicted = [&](const char* kind) {
    row.measured.memory_kind = kind;
    Notes notes;
    return predicted_memory_gib(report, measured_memory(row, notes));
  };
  EXPECT_EQ(predicted("peak_allocated (torch)"), 7);
  EXPECT_EQ(predicted("peak_active"), 7);
  EXPECT_EQ(predicted("peak_reserved"), 15);
  EXPECT_EQ(predicted("nvidia-smi (GB as printed)"), 31);
  EXPECT_EQ(predicted("not stated"), 31);
  EXPECT_EQ(predicted("component sum: states and activations"), 3);
}

TEST(Score, ChoosesTheLeastRecomputeThatFits) {
  Row row = llama_row();
  row.recompute = "not stated";
  row.measured.step_time_s = 1;
  RowPredictor predictor;
  EXPECT_EQ(predictor.predict(row).variants.front().layout.recompute, Recompute::none);
  row.model.layers = 32;
  row.model.hidden = 4096;
  row.model.ffn = 14336;
  row.model.heads = 32;
  row.model.kv_heads = 8;
  row.model.seq = 16384;
  row.batch.micro = 4;
  row.batch.global = 32;
  EXPECT_EQ(predictor.predict(row).variants.front().layout.recompute, Recompute::full);
}

TEST(Score, WeighsOffloadedLayersByTheirShare) {
  Row row = llama_row();
  row.measured.memory_gib = 1;
  row.measured.memory_kind = "peak_allocated";
  set_flag(row, "cpu_offloading_num_layers", std::int64_t{1});
  const RowPrediction p = RowPredictor().predict(row);
  ASSERT_EQ(p.reports.size(), 2U);
  EXPECT_DOUBLE_EQ(*p.memory_gib, 0.25 * predicted_memory_gib(p.reports[0], p.memory) +
                                      0.75 * predicted_memory_gib(p.reports[1], p.memory));
  EXPECT_DOUBLE_EQ(*p.step_time_s,
                   0.25 * p.reports[0].step_time.value() + 0.75 * p.reports[1].step_time.value());
  EXPECT_GT(p.reports[0].step_time, p.reports[1].step_time);  // copies to the host cost time
}

TEST(ScoreJson, HasTheKeysThatProgramsRead) {
  const auto json = nlohmann::json::parse(to_json(score(made_up())));
  EXPECT_EQ(json.at("schema"), "shardwise.score/1");
  EXPECT_EQ(json.size(), 7U);
  EXPECT_EQ(json.at("verdicts").at(0).size(), 6U);
  const auto& row = json.at("rows").at(0);
  EXPECT_EQ(row.size(), 8U);
  EXPECT_NEAR(row.at("error").get<double>(),
              row.at("predicted").get<double>() / row.at("measured").get<double>() - 1, 1e-12);
  EXPECT_TRUE(row.at("assumed").is_array());
  EXPECT_EQ(row.at("engine"), "fsdp2");
  EXPECT_EQ(json.at("skipped").at(0).size(), 2U);
  EXPECT_EQ(json.at("sources").at(0).size(), 6U);
  for (const char* quantity : {"memory", "time"}) {
    const auto& overall = json.at("overall").at(quantity);
    for (const char* key : {"sources", "rows", "median_abs_error", "p90_abs_error", "bias"}) {
      EXPECT_TRUE(overall.contains(key)) << quantity << " " << key;
    }
  }
}

TEST(ScoreText, SaysWhatWasLeftOutAndWhy) {
  const std::string text = to_text(score(made_up()), ScoreScreen::whole, /*colour=*/false);
  EXPECT_THAT(text, HasSubstr("GPU Abacus 9000 is not in the catalogue"));
  EXPECT_THAT(text, HasSubstr("wrong verdicts of 3 runs: 0 that ran"));
  const std::string rows = to_text(score(made_up()), ScoreScreen::rows, /*colour=*/false);
  EXPECT_THAT(rows, HasSubstr("second/ratio"));
}

TEST(ExplainText, SaysHowARowWasUnderstood) {
  const std::string text = explain_text(made_up().front(), /*colour=*/false);
  EXPECT_THAT(text, HasSubstr("engine fsdp2"));
  EXPECT_THAT(text, HasSubstr("8,030,261,248 parameters"));
  EXPECT_THAT(text, HasSubstr("optimizer_moments"));
}

}  // namespace
}  // namespace shardwise
