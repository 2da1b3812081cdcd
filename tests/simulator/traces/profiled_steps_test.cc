#include "simulator/traces/profiled_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/spec/json/reader.h"
#include "simulator/traces/traced_run.h"
#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

using testing::HasSubstr;

/// Two steps of a rank of FSDP, written by hand; its times are round so that sums are seen at once.
TracedRun by_hand() {
  static const std::string kText = *read_file("tests/golden/profiler_trace.json");
  Result<TracedRun> run = read_trace(source_of(kText), "profiler_trace.json");
  EXPECT_TRUE(run.ok()) << to_string(run.problems());
  return *std::move(run);
}

KindTime kind_time(const StepProfile& profile, WorkKind kind, StepPhase phase) {
  for (const KindTime& time : profile.kinds) {
    if (time.kind == kind && time.phase == phase) return time;
  }
  return {};
}

// Kernels of one stream may overlap: they are counted, not refused.
TEST(ProfiledSteps, CountWhatOverlapsOnAStream) {
  EXPECT_EQ(by_hand().profiled.overlapping, 0);
  const std::string text = R"([
    {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0, "dur": 100},
    {"ph": "X", "cat": "kernel", "name": "other stream", "pid": 0, "tid": 8, "ts": 50, "dur": 100},
    {"ph": "X", "cat": "kernel", "name": "by the clock", "pid": 0, "tid": 7, "ts": 99.5, "dur": 10},
    {"ph": "X", "cat": "kernel", "name": "damaged", "pid": 0, "tid": 7, "ts": 200, "dur": 9000},
    {"ph": "X", "cat": "kernel", "name": "within", "pid": 0, "tid": 7, "ts": 300, "dur": 40},
    {"ph": "X", "cat": "kernel", "name": "within", "pid": 0, "tid": 7, "ts": 400, "dur": 60}])";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  ASSERT_TRUE(run.ok()) << to_string(run.problems());
  EXPECT_EQ(run->profiled.overlapping, 2);
  EXPECT_NEAR(run->profiled.longest_overlap.value(), 60 * kMicrosecond, 1e-12);
}

TEST(ProfiledSteps, GoFromTheFirstWorkOfOneToTheFirstOfTheNext) {
  const TracedRun run = by_hand();
  ASSERT_EQ(run.profiled.steps.size(), 2U);
  EXPECT_EQ(run.profiled.steps[0].name, "ProfilerStep#3");
  // From 40 us, when the batch is copied, to 1,040 us.
  EXPECT_NEAR(run.profiled.steps[0].profile.length.value(), 1000 * kMicrosecond, 1e-12);
  // The last one to the end of its last kernel: 2,000 us.
  EXPECT_NEAR(run.profiled.steps[1].profile.length.value(), 960 * kMicrosecond, 1e-12);
  EXPECT_EQ(run.profiled.median().name, "ProfilerStep#4");
  EXPECT_EQ(run.head.rank, 1);
  EXPECT_EQ(run.head.device, "NVIDIA H100 80GB HBM3");
}

TEST(ProfiledSteps, PartComputeFromExposedCommunicationAndIdleTime) {
  const StepProfile step = by_hand().profiled.steps[0].profile;
  // Kernels from 100 to 800 us and from 900 to 960 us.
  EXPECT_NEAR(step.computing.value(), 760 * kMicrosecond, 1e-12);
  // A copy from 40 to 50 us, gathers from 50 to 150 us, reductions from 600 to 900 us.
  EXPECT_NEAR(step.communicating.value(), 410 * kMicrosecond, 1e-12);
  EXPECT_NEAR(step.exposed.value(), 160 * kMicrosecond, 1e-12);
  EXPECT_NEAR(step.idle.value(), 80 * kMicrosecond, 1e-12);
  EXPECT_NEAR(step.overlap(), 250.0 / 410, 1e-9);
}

TEST(ProfiledSteps, KnowThePhaseByTheLaunch) {
  const StepProfile step = by_hand().profiled.steps[0].profile;
  const auto microseconds = [&step](WorkKind kind, StepPhase phase) {
    return kind_time(step, kind, phase).time.value() / kMicrosecond;
  };
  EXPECT_NEAR(microseconds(WorkKind::gemm, StepPhase::forward), 200, 1e-6);
  EXPECT_NEAR(microseconds(WorkKind::gemm, StepPhase::backward), 250, 1e-6);
  EXPECT_NEAR(microseconds(WorkKind::attention, StepPhase::forward), 100, 1e-6);
  EXPECT_NEAR(microseconds(WorkKind::attention, StepPhase::backward), 150, 1e-6);
  EXPECT_NEAR(microseconds(WorkKind::all_gather, StepPhase::forward), 100, 1e-6);
  EXPECT_NEAR(microseconds(WorkKind::reduce_scatter, StepPhase::backward), 300, 1e-6);
  // Clipping is launched by the thread of the forward pass, after autograd has ended.
  EXPECT_NEAR(microseconds(WorkKind::memory_bound, StepPhase::optimizer), 20 + 40, 1e-6);
  EXPECT_EQ(kind_time(step, WorkKind::memory_bound, StepPhase::forward).count, 0);
  EXPECT_NEAR(
      kind_time(step, WorkKind::all_gather, StepPhase::forward).exposed.value() / kMicrosecond, 50,
      1e-6);
}

TEST(ProfiledSteps, TellAnExchangeFromAMessageByTheCall) {
  const TracedRun run = by_hand();
  const StepProfile& step = run.profiled.steps[1].profile;
  EXPECT_EQ(kind_time(step, WorkKind::all_to_all, StepPhase::optimizer).count, 1);
  EXPECT_EQ(kind_time(step, WorkKind::send_recv, StepPhase::optimizer).count, 0);
}

TEST(ProfiledSteps, CountWhatTheyCannotPlace) {
  const TracedRun run = by_hand();
  EXPECT_EQ(run.profiled.without_launch, 1);
  EXPECT_EQ(
      kind_time(run.profiled.steps[1].profile, WorkKind::memory_bound, StepPhase::unknown).count,
      1);
  ASSERT_EQ(run.not_read.size(), 1U);
  EXPECT_EQ(run.not_read.at("mtia_ccp_events"), 1);
}

TEST(ProfiledSteps, AreOneWithoutMarks) {
  const std::string text =
      R"([{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":10},
          {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":10},
          {"ph":"X","cat":"kernel","name":"gemm","pid":1,"tid":7,"ts":0,"dur":3}])";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  ASSERT_TRUE(run.ok()) << to_string(run.problems());
  ASSERT_EQ(run->profiled.steps.size(), 1U);
  EXPECT_EQ(run->profiled.steps[0].name, "whole trace");
  EXPECT_NEAR(run->profiled.steps[0].profile.length.value(), 30e-6, 1e-12);
  EXPECT_NEAR(run->profiled.steps[0].profile.idle.value(), 10e-6, 1e-12);
  EXPECT_EQ(run->profiled.other_devices, 1);
}

TEST(ReadTrace, ListsWhatATraceHasWhenNothingRanOnADevice) {
  const std::string text = R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":1},
                               {"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":1},
                               {"ph":"X","cat":"overhead","name":"o","ts":0,"dur":1}])";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.problems().front().message,
            "no kernels, copies or fills of a device, only 2 cpu_op, 1 overhead");
}

TEST(ReadTrace, NamesTheLineOfAnEventWithoutItsTime) {
  const std::string text = "[\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1}]";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.problems().front().line, 2);
  EXPECT_EQ(run.problems().front().message, "a kernel event lacks its dur (duration)");
}

TEST(ReadTrace, RefusesAnotherSchema) {
  const std::string text = R"({"otherData": {"schema": "shardwise.trace/9"}, "traceEvents": []})";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.problems().front().message, HasSubstr("shardwise.trace/9 is not a trace"));
}

}  // namespace
}  // namespace shardwise::sim
