// A recorded run beside a plan's step.
#include "simulator/comparison/import_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/traces/trace.h"
#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan gpt2_on_a_node() {
  Plan plan = {
      *load_model("gpt2"), *find_cluster("dgx-h100"), {}, *find_engine("megatron_ddp"), {}};
  plan.layout.zero_stage = 1;
  plan.layout.dp_shard = 8;
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 32;
  return plan;
}

TracedRun traced(const Plan& plan, Granularity granularity) {
  SimulationOptions options;
  options.granularity = granularity;
  const Simulation made = simulate(plan, options);
  std::string text;
  write_trace(plan, made, 64, [&text](std::string_view piece) { text += piece; });
  return *read_trace(source_of(text), "t.json");
}

TEST(ImportRun, SimulatesAtTheGranularityOfTheTrace) {
  const Plan plan = gpt2_on_a_node();
  for (const Granularity each : {Granularity::layer, Granularity::kernel}) {
    const TracedRun run = traced(plan, each);
    EXPECT_EQ(granularity_of(run), each == Granularity::layer ? "layer" : "kernel");
    const Result<ImportedRun> imported = import_run(run, "t.json", plan, {}, "");
    ASSERT_TRUE(imported.ok());
    const TraceComparison& found = imported->comparison;
    EXPECT_EQ(found.joined, found.operations.size());
    EXPECT_NEAR(found.step.measured.length.value(), found.step.predicted.length.value(), 2e-9);
    EXPECT_THAT(import_notes(run, found), IsEmpty());
  }
}

TEST(ImportRun, RefusesAnotherGranularity) {
  const Plan plan = gpt2_on_a_node();
  const TracedRun run = traced(plan, Granularity::layer);
  const Result<ImportedRun> imported = import_run(run, "t.json", plan, {}, "kernel");
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.problems().front().path, "--granularity");
  EXPECT_EQ(imported.problems().front().message,
            "kernel, but t.json has operations of granularity layer");
  EXPECT_TRUE(import_run(run, "t.json", plan, {}, "layer").ok());
}

TEST(ImportRun, RefusesStepsOfNoLength) {
  const Plan plan = gpt2_on_a_node();
  TracedRun run;
  run.by_profiler = true;
  run.profiled.steps.emplace_back();
  const Result<ImportedRun> imported = import_run(run, "t.json", plan, {}, "");
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.problems().front().path, "/traceEvents");
}

TEST(ImportNotes, SayWhatIsNotCompared) {
  TracedRun ours;
  TraceComparison other;
  other.same_plan = false;
  EXPECT_THAT(import_notes(ours, other),
              ElementsAre("the trace is of another plan",
                          "no operation of the trace has the name of a simulated operation"));
  other.joined = 2;
  other.unknown = 1234;
  other.stage = 3;
  EXPECT_THAT(import_notes(ours, other),
              ElementsAre("the trace is of another plan",
                          HasSubstr("1,234 operations of stage 3 left out of the first tables")));

  TracedRun profiled;
  profiled.by_profiler = true;
  profiled.profiled.has_backward = true;
  profiled.profiled.other_devices = 1;
  profiled.not_read = {{"python\x1b", 2}};
  EXPECT_THAT(import_notes(profiled, {}),
              ElementsAre("1 event of other devices left out",
                          testing::AllOf(HasSubstr("2 events of kind python"),
                                         testing::Not(HasSubstr("\x1b")))));
}

/// What is said of one operation of ours, in line 3, with these fields.
std::string said_of(const std::string& process, const std::string& arguments) {
  const std::string text =
      "{\"otherData\": {\"schema\": \"shardwise.trace/1\"},\n \"traceEvents\": [\n  {\"ph\": "
      "\"X\", \"cat\": \"fwd\", \"name\": \"fwd.layer0\", \"ts\": 5, \"dur\": 1000, "
      "\"tid\": 1, \"pid\": " +
      process + ", \"args\": {" + arguments + "}}]}";
  const Result<TracedRun> run = read_trace(source_of(text), "t.json");
  return run ? "" : to_string(run.problems().front());
}

TEST(OurTraces, RefuseOperationsThatSayWhatNoneCan) {
  EXPECT_EQ(said_of("0", ""), "");
  EXPECT_EQ(said_of("0", R"("waited_us": 1000, "layer": 0, "bytes": 4096)"), "");
  EXPECT_EQ(said_of("0", R"("waited_us": 1000.001, "layer": 7, "bytes": 1e12)"), "");  // rounded
  EXPECT_THAT(said_of("0", R"("waited_us": 1e9)"), HasSubstr("t.json:3: operation fwd.layer0 "));
  EXPECT_THAT(said_of("0", R"("waited_us": 1e9)"), HasSubstr("args.waited_us"));
  EXPECT_THAT(said_of("0", R"("waited_us": -1)"), HasSubstr("waited"));
  EXPECT_THAT(said_of("-3", ""), HasSubstr("pid"));
  EXPECT_THAT(said_of("0", R"("layer": -5)"),
              HasSubstr("t.json:3: operation fwd.layer0: args.layer is -5"));
  EXPECT_THAT(said_of("0", R"("bytes": 1e300)"), HasSubstr("args.bytes is 1e+300"));
  EXPECT_THAT(said_of("0", R"("bytes": -1)"), HasSubstr("args.bytes is -1"));
  EXPECT_THAT(said_of("0", R"("bytes": 18446744073709551615)"), HasSubstr("args.bytes"));
}

TEST(OurTraces, LeaveToOtherProgramsWhatTheyMeanByTheSameWords) {
  const std::string text = R"([{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7,
    "ts": 0, "dur": 4, "args": {"layer": -5, "bytes": 1e300}}])";
  EXPECT_TRUE(read_trace(source_of(text), "t.json").ok());
}

}  // namespace
}  // namespace shardwise::sim
