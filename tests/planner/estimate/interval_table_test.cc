#include "planner/estimate/interval_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

IntervalCell cell(std::string family, std::string architecture, double high) {
  return {IntervalOf::step, {0.9, high, 40, 5, std::move(family), std::move(architecture)}};
}

TEST(IntervalIn, IsThatOfTheFirstCellThatHolds) {
  IntervalTable table;
  table.cells = {cell("pytorch", "hopper", 1.1), cell("", "", 1.3)};
  const auto high = [&](const char* family, const char* architecture) {
    return interval_in(table, IntervalOf::step, family, architecture).high;
  };
  EXPECT_EQ(high("pytorch", "hopper"), 1.1);
  EXPECT_EQ(high("pytorch", "ampere"), 1.3);
  EXPECT_EQ(high("megatron", "hopper"), 1.3);
  EXPECT_FALSE(interval_in(table, IntervalOf::allocated, "pytorch", "hopper").known());
}

TEST(FamilyOf, JoinsEnginesThatShareTheirSoftware) {
  EXPECT_EQ(family_of("fsdp2"), "pytorch");
  EXPECT_EQ(family_of("deepspeed"), "pytorch");
  EXPECT_EQ(family_of("megatron_fsdp"), "megatron");
  EXPECT_EQ(family_of("fsdp2_in_megatron"), "megatron");
  EXPECT_EQ(family_of("internevo"), "internevo");
}

// Tables that say less than the program prints would leave screens without intervals.
TEST(ReportIntervals, AreKnownOfEveryEngineOnAGpu) {
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  for (const std::string& name : engine_names()) {
    SCOPED_TRACE(name);
    const EngineProfile& engine = *find_engine(name);
    const ReportIntervals known = report_intervals(engine, cluster);
    const bool exact = engine.allocator == AllocatorKind::arena;
    EXPECT_TRUE(known.step.known());
    EXPECT_EQ(known.allocated.known(), !exact);
    EXPECT_EQ(known.nvidia_smi.known(), !exact);
    for (const ErrorInterval* each : {&known.step, &known.allocated, &known.nvidia_smi}) {
      if (!each->known()) continue;
      EXPECT_LE(each->low, 1);
      EXPECT_GE(each->high, 1);
      EXPECT_GE(each->sources, 4);
    }
    const ErrorInterval ratio = step_ratio_interval(name, cluster);
    EXPECT_NEAR(ratio.low * ratio.high, 1, 1e-3) << "a pair counts both ways round";
  }
}

TEST(ReportIntervals, AreNotKnownOfCpusThatNobodyMeasured) {
  ClusterSpec cluster = *find_cluster("dgx-h100");
  cluster.gpu.architecture = "cpu";
  EXPECT_FALSE(report_intervals(fsdp2(), cluster).any());
  EXPECT_FALSE(step_ratio_interval("fsdp2", cluster).known());
}

// Issue 28: 90 % intervals that cover 88 to 92 % of what was left out by source.
TEST(BuiltInIntervals, CoverWhatTheyClaimOfSourcesLeftOut) {
  ASSERT_EQ(interval_table().coverage.size(), values_of<IntervalOf>().size());
  for (const IntervalCoverage& each : interval_table().coverage) {
    SCOPED_TRACE(name_of(each.quantity));
    EXPECT_GE(each.of_sources, 0.88);
    EXPECT_LE(each.of_sources, 0.92);
  }
}

TEST(IntervalTableJson, ReadsBackAsItWasWritten) {
  const std::string text = interval_table_json(interval_table());
  const Result<IntervalTable> read = interval_table_from_text(text, "intervals.json");
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(interval_table_json(*read), text);
}

TEST(IntervalTableJson, RefusesAnIntervalWithoutThePrediction) {
  IntervalTable table;
  table.cells = {cell("", "", 0.95)};
  const Result<IntervalTable> read =
      interval_table_from_text(interval_table_json(table), "intervals.json");
  ASSERT_FALSE(read);
  EXPECT_THAT(to_string(read.problems()), testing::HasSubstr("/cells/0/high"));
}

}  // namespace
}  // namespace shardwise
