#include "simulator/clock/step_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/simulate.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

void expect_no_more_exposed_than_sent(const Plan& plan, const SimulationOptions& options) {
  const StepReport report = simulate(plan, options).report;
  for (const AxisTime& axis : report.by_axis) {
    EXPECT_GT(axis.total, Seconds(0)) << axis.axis;
    EXPECT_LE(axis.exposed.value(), axis.total.value() * (1 + 1e-9))
        << axis.axis << " of " << plan.engine.name << " " << test::text_of(plan.layout);
  }
}

// The stage that computes longest, the host's delays included, is not the one that the closed form
// takes: this has more layers, that one the head.
TEST(StepReport, ExposesNoMoreThanIsSentWhereTheHostIsLate) {
  Plan plan = example("megatron_fsdp", 64);
  plan.model = *load_model("gemma-2-9b");
  plan.layout.tp = 4;
  plan.layout.sequence_parallel = true;
  plan.layout.pp = 8;
  plan.layout.dp_shard = 2;
  plan.layout.zero_stage = 0;
  plan.job.sequence_length = 1024;
  for (const Granularity size : {Granularity::layer, Granularity::kernel}) {
    SimulationOptions options;
    options.granularity = size;
    expect_no_more_exposed_than_sent(plan, options);
  }
}

TEST(StepReport, ExposesNoMoreThanIsSentInAnyLayout) {
  int drawn = 0;
  for (const char* engine : {"megatron_ddp", "shardwise"}) {
    for (Plan plan : {example(engine, 16), mixture_example(engine, 16)}) {
      plan.job.sequence_length = 512;
      const auto check = [&drawn](const Plan& each) {
        for (const bool host : {true, false}) {
          SimulationOptions options;
          options.host = host;
          expect_no_more_exposed_than_sent(each, options);
        }
        ++drawn;
      };
      draw(plan, 20, 4, check);
      const auto as_drawn = [](Layout&) {};
      draw_pipelines(plan, 10, 5, as_drawn, check);
    }
  }
  EXPECT_GE(drawn, 100 / drawn_of());
}

// No part below nothing, by no rounding, and all of them the step: else it is refused.
TEST(StepReport, ReadsBackOfAnyLayout) {
  int drawn = 0;
  const auto check = [&drawn](const Plan& plan) {
    StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
    for (const bool simulated : {false, true}) {
      if (simulated) report = simulate(plan).report;
      const Result<StepReport> read = report_from_text(report_json(report), "r.json");
      EXPECT_TRUE(read.ok()) << to_string(read.problems()) << test::text_of(plan.layout);
    }
    ++drawn;
  };
  draw(mixture_example("megatron_ddp", 16), 20, 6, check);
  draw_pipelines(
      example("shardwise", 16), 60, 7, [](Layout&) {}, check);
  EXPECT_GE(drawn, 80 / drawn_of());
}

// Its weight gradients communicate nothing: all of it is beside the input gradients.
TEST(StepReport, CountsTheCommunicationOfASplitBackwardPassWhole) {
  std::vector<Seconds> exposed;
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h1}) {
    Plan plan = example("shardwise", 8);
    plan.layout.tp = 2;
    plan.layout.sequence_parallel = true;
    plan.layout.pp = 4;
    plan.layout.schedule = schedule;
    SimulationOptions options;
    options.host = options.contention = false;
    exposed.push_back(simulate(plan, options).report.time.tp_exposed);
  }
  EXPECT_GT(exposed[0], Seconds(0));
  EXPECT_NEAR(exposed[1] / exposed[0], 1, 1e-9);
}

// Where nothing overlaps, a part of the step is what the closed form says of it.
TEST(StepReport, HasTheClosedFormsPartsOnOneStage) {
  Plan plan = example("megatron_ddp", 8);
  plan.layout.tp = 8;
  plan.layout.sequence_parallel = true;
  SimulationOptions options;
  options.host = options.contention = false;
  const TimeParts parts = simulate(plan, options).report.time;
  const TimeParts closed =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).time;
  EXPECT_NEAR(parts.forward / closed.forward, 1, 1e-6);
  EXPECT_NEAR(parts.backward / closed.backward, 1, 1e-6);
  // The clock has the gradients' norm and its sum besides.
  EXPECT_NEAR(parts.tp_exposed / closed.tp_exposed, 1, 1e-3);
  EXPECT_NEAR(parts.straggler / closed.straggler, 1, 5e-3);
}

/// Reports of `plan` by representatives and by all ranks are the same text.
void expect_the_same_of_all_ranks(const char* cluster, std::int64_t gpus, Plan plan) {
  plan.cluster = *with_gpus(*find_cluster(cluster), gpus);
  plan.layout.dp_shard = static_cast<std::int32_t>(gpus / plan.layout.tp / plan.layout.pp);
  SimulationOptions options;
  const Simulation few = simulate(plan, options);
  options.all_ranks = true;
  const Simulation all = simulate(plan, options);
  EXPECT_LT(few.work.actors.size(), all.work.actors.size());
  const bool same = report_json(all.report) == report_json(few.report);
  EXPECT_TRUE(same) << cluster << " " << plan.engine.name;
}

// Links that 2, 4 and 8 ranks share, of one stage and of several.
TEST(StepReport, IsTheSameToTheLastDigitOfAllRanksOnSharedLinks) {
  Plan sharded = example("fsdp2", 64);
  sharded.model = *load_model("pythia-2.8b");
  sharded.layout.zero_stage = 3;
  sharded.job.global_batch_size = 64;
  sharded.job.sequence_length = 2048;
  Plan pipelined = example("megatron_ddp", 64);
  pipelined.layout.pp = 4;
  pipelined.layout.zero_stage = 1;
  pipelined.job.global_batch_size = 64;
  for (const Plan& plan : {sharded, pipelined}) {
    expect_the_same_of_all_ranks("gcp-a2-ultra", 64, plan);
    expect_the_same_of_all_ranks("aws-g5", 64, plan);
    expect_the_same_of_all_ranks("h100-nvl", 8, plan);
  }
}

}  // namespace
}  // namespace shardwise::sim
