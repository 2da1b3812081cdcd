#include "simulator/clock/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "planner/cost/collectives/collective.h"
#include "planner/cost/software/time_rules.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/report/report_json.h"
#include "simulator/traces/trace.h"

namespace shardwise::sim {
namespace {

Plan plan_with_batch(const char* model, const char* engine, std::int64_t gpus, const Layout& layout,
                     std::int64_t batch) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.engine = *find_engine(engine);
  plan.layout = layout;
  plan.job.global_batch_size = batch;
  return plan;
}

Plan sharded_llama_8b() {
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = 3;
  return plan_with_batch("llama-3.1-8b", "fsdp2", 8, layout, 16);
}

Plan pipelined_llama_70b() {
  Layout layout;
  layout.tp = 8;
  layout.sequence_parallel = true;
  layout.pp = 4;
  layout.dp_shard = 2;
  layout.zero_stage = 1;
  return plan_with_batch("llama-3.1-70b", "megatron_ddp", 64, layout, 32);
}

Seconds closed_form(const Plan& plan) {
  return evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).step_time;
}

StreamTime receiving(const Plan& plan, std::size_t stage) {
  const Simulation made = simulate(plan);
  for (const StreamTime& stream : made.report.timeline->stages[stage].streams) {
    if (stream.stream == name_of(Stream::receive)) return stream;
  }
  return {};
}

TEST(Simulate, GivesNothingOnceItIsAskedToStop) {
  std::stop_source stop;
  EXPECT_TRUE(simulate(pipelined_llama_70b(), {}, stop.get_token()));
  EXPECT_TRUE(simulated_length(pipelined_llama_70b(), {}, stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(simulate(pipelined_llama_70b(), {}, stop.get_token()));
  EXPECT_FALSE(simulated_length(pipelined_llama_70b(), {}, stop.get_token()));
}

// Four ranks on two cores: what a collective takes beside compute is missing there, so a step is as
// long as both together.
TEST(Simulate, HidesNothingOfACollectiveWhereRanksShareProcessors) {
  Layout layout;
  layout.dp_shard = 4;
  layout.zero_stage = 3;
  Plan plan = plan_with_batch("llama-tiny", "shardwise", 4, layout, 4);
  plan.cluster = *with_gpus(*find_cluster("laptop"), 4);
  plan.cluster.gpu.cores_per_rank = 0.5;
  plan.cluster.gpu.sm_count = 1;
  plan.job.precision = DType::fp32;
  plan.job.sequence_length = 128;
  SimulationOptions alone;
  alone.contention = false;
  const Simulation apart = simulate(plan, alone);
  double computing = 0;
  double moving = 0;
  for (const StreamTime& stream : apart.report.timeline->stages.front().streams) {
    (stream.stream == name_of(Stream::compute) ? computing : moving) += stream.busy.value();
  }
  EXPECT_GT(moving, 0.01 * computing);
  EXPECT_LT(apart.report.step_time.value(), computing + 0.6 * moving);
  const double together = simulate(plan).report.step_time.value();
  EXPECT_NEAR(together, computing + moving, 0.01 * together);
  EXPECT_NEAR(together, closed_form(plan).value(), 0.02 * together);
}

TEST(Simulate, RunsNothingBesideMessagesWithOneChunkAStage) {
  const StreamTime one_chunk = receiving(pipelined_llama_70b(), 1);
  EXPECT_GT(one_chunk.busy, Seconds(0));
  EXPECT_NEAR(one_chunk.exposed / one_chunk.busy, 1, 1e-9);
  Plan interleaved = pipelined_llama_70b();
  interleaved.layout.vpp = 5;
  const StreamTime chunks = receiving(interleaved, 1);
  EXPECT_LT(chunks.exposed / chunks.busy, 0.5);
}

/// Short kernels, so that a stage waits for its host.
Plan short_kernels(std::int32_t pp, std::int32_t dp) {
  Layout layout;
  layout.pp = pp;
  layout.dp_shard = dp;
  layout.zero_stage = 1;
  return plan_with_batch("gpt2", "megatron_ddp", std::int64_t{pp} * dp, layout, 16);
}

TEST(Simulate, CountsAHostThatWaitedForTheDeviceAsLaunches) {
  const TimeParts alone = simulate(short_kernels(1, 8)).report.time;
  EXPECT_GT(alone.launch, Seconds(0));
  EXPECT_NEAR(alone.bubble.value(), 0, 1e-12);
  // The host waits after each message of 1F1B, and every pass for its first kernel.
  const Plan plan = short_kernels(4, 1);
  const TimeParts waits = simulate(plan).report.time;
  const double issue = time_rules(plan.job, plan.engine, plan.cluster).issue.value();
  EXPECT_GT(waits.launch.value(), 2 * 16 * issue);
}

TEST(Simulate, CountsWhatMessagesTakeFromComputeAsMessages) {
  EXPECT_GT(simulate(short_kernels(4, 2)).report.time.dp_exposed, Seconds(0));
  SimulationOptions options;
  options.host = false;
  const Plan plan = short_kernels(4, 1);
  const TimeParts shared = simulate(plan, options).report.time;
  options.contention = false;
  const TimeParts apart = simulate(plan, options).report.time;
  EXPECT_NEAR(shared.dp_exposed.value(), apart.dp_exposed.value(), 1e-12);
  EXPECT_GE(shared.pp_exposed, apart.pp_exposed);
}

TEST(Simulate, SaysWhereOneQueueHangsAPipelineOfChunks) {
  SimulationOptions options;
  options.in_issue_order = true;
  EXPECT_TRUE(hanging_at(sharded_llama_8b(), options).empty());
  EXPECT_TRUE(hanging_at(pipelined_llama_70b(), options).empty());
  Plan chunks = pipelined_llama_70b();
  chunks.layout.vpp = 5;
  const std::vector<std::string> hanging = hanging_at(chunks, options);
  ASSERT_FALSE(hanging.empty());
  // Each stage stands at a message that nobody takes.
  for (const char* stage : {"on stage 0", "on stage 1"}) {
    const bool sends = std::any_of(hanging.begin(), hanging.end(), [&](const std::string& each) {
      return each.starts_with("send") && each.ends_with(stage);
    });
    EXPECT_TRUE(sends) << stage;
  }
  options.in_issue_order = false;
  EXPECT_TRUE(hanging_at(chunks, options).empty());
}

TEST(Simulate, HidesTheExchangeOfExpertsAsTheClosedFormDoes) {
  Layout layout;
  layout.dp_shard = 8;
  layout.ep = 8;
  layout.zero_stage = 1;
  Plan plan = plan_with_batch("deepseek-v2-lite", "megatron_ddp", 8, layout, 64);
  SimulationOptions options;
  options.contention = false;
  const Seconds alone = simulate(plan, options).report.step_time;
  plan.job.expert_overlap = true;
  const Seconds beside = simulate(plan, options).report.step_time;
  EXPECT_LT(beside / alone, 0.97);
  EXPECT_NEAR(beside / closed_form(plan), 1, 0.02);
}

TEST(Simulate, DrawsArrowsFromWithinWhatTheyLeaveToWithinWhatTheyReach) {
  const Plan plan = pipelined_llama_70b();
  std::string text;
  write_trace(plan, simulate(plan), 64, [&text](std::string_view piece) { text += piece; });
  const auto events = nlohmann::json::parse(text)["traceEvents"];
  // Of each lane the spans, by their start in nanoseconds.
  std::map<std::pair<int, int>, std::map<std::int64_t, std::int64_t>> lanes;
  const auto nanoseconds = [](const nlohmann::json& us) {
    return std::llround(us.get<double>() * 1e3);
  };
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    const std::int64_t start = nanoseconds(event["ts"]);
    lanes[{event["pid"], event["tid"]}][start] = start + nanoseconds(event["dur"]);
  }
  std::map<std::int64_t, int> ends;  // by the arrow's number: one s, one f
  for (const auto& event : events) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    ends[event["id"]] += event["ph"] == "s" ? 1 : 100;
    const auto& lane = lanes[{event["pid"], event["tid"]}];
    const std::int64_t at = nanoseconds(event["ts"]);
    auto after = lane.upper_bound(at);
    ASSERT_NE(after, lane.begin()) << event;
    EXPECT_LT(at, std::prev(after)->second) << event;
  }
  // Perfetto draws thread 0 and the thread that has its process's number as one lane.
  std::set<int> processes;
  for (const auto& each : lanes) processes.insert(each.first.first);
  for (const auto& each : lanes) {
    EXPECT_NE(each.first.second, 0);
    EXPECT_FALSE(processes.contains(each.first.second));
  }
  EXPECT_GT(ends.size(), 100U);
  for (const auto& [id, count] : ends) EXPECT_EQ(count, 101) << id;
}

// Where one kind of traffic is beside compute, the closed form knows what both lose.
TEST(Simulate, IsWithinOnePercentOfTheClosedFormInAPipeline) {
  const Simulation made = simulate(pipelined_llama_70b());
  EXPECT_NEAR(made.report.step_time / closed_form(pipelined_llama_70b()), 1, 0.01);
}

TEST(Simulate, HasPartsThatAddUpToTheStep) {
  for (const Plan& plan : {sharded_llama_8b(), pipelined_llama_70b()}) {
    const Simulation made = simulate(plan);
    EXPECT_NEAR(made.report.time.total() / made.report.step_time, 1, 1e-9);
    for (const TimePart& part : kTimeParts) {
      EXPECT_GE(made.report.time.*part.field, Seconds(0)) << part.key;
    }
  }
}

TEST(Simulate, IsNeverShorterThanItsBusiestStream) {
  const Simulation made = simulate(pipelined_llama_70b());
  const StepTimeline timeline = made.report.timeline.value_or(StepTimeline{});
  ASSERT_EQ(timeline.stages.size(), 4U);
  for (const StageTimeline& stage : timeline.stages) {
    for (const StreamTime& stream : stage.streams) {
      EXPECT_LE(stream.busy.value(), made.timeline.length() * (1 + 1e-9)) << stream.stream;
    }
  }
  EXPECT_LE(timeline.critical_path, made.report.step_time);
}

TEST(Simulate, FreesWhatItAllocates) {
  for (const Plan& plan : {sharded_llama_8b(), pipelined_llama_70b()}) {
    const Simulation made = simulate(plan);
    for (const MemoryCourse& course : made.memory) {
      EXPECT_TRUE(course.misused.empty());
      EXPECT_EQ(course.moments.back().allocated, course.moments.front().allocated);
    }
  }
}

TEST(Simulate, AgreesExactlyWithEveryRankSimulated) {
  const Plan plan = pipelined_llama_70b();
  SimulationOptions options;
  const Simulation few = simulate(plan, options);
  options.all_ranks = true;
  const Simulation all = simulate(plan, options);
  EXPECT_EQ(all.work.actors.size(), 64U);
  EXPECT_EQ(all.timeline.length(), few.timeline.length());
  EXPECT_EQ(report_json(all.report), report_json(few.report));
}

// Where compute and gathers slow one another, a collective lasts longer than alone: that is not
// waiting for the other ranks.
TEST(Simulate, ReportsTheSameOfEveryRankWhereCollectivesAreSlowed) {
  SimulationOptions options;
  const Simulation few = simulate(sharded_llama_8b(), options);
  options.all_ranks = true;
  EXPECT_EQ(report_json(simulate(sharded_llama_8b(), options).report), report_json(few.report));
}

TEST(Simulate, AgreesExactlyWithEveryRankWhereStagesShareNics) {
  // Stages of 2 x 3 ranks on nodes of 8 with a NIC for 2: nodes mix stages unevenly.
  Layout layout;
  layout.tp = 2;
  layout.pp = 4;
  layout.dp_shard = 3;
  layout.zero_stage = 1;
  for (const Axis first : {Axis::tp, Axis::pp}) {
    std::swap(layout.order[0], *std::find(layout.order.begin(), layout.order.end(), first));
    Plan plan = plan_with_batch("llama-3.1-8b", "megatron_ddp", 24, layout, 48);
    plan.cluster = *with_gpus(*find_cluster("aws-p4d"), 24);
    SimulationOptions options;
    const Simulation few = simulate(plan, options);
    options.all_ranks = true;
    const Simulation all = simulate(plan, options);
    ASSERT_EQ(all.work.actors.size(), 24U);
    EXPECT_LT(few.work.actors.size(), 24U);
    EXPECT_EQ(all.timeline.length(), few.timeline.length());
    EXPECT_EQ(report_json(all.report), report_json(few.report));
  }
}

TEST(Simulate, SaysWhatANicCarriesForAllItsGpus) {
  Layout layout;
  layout.dp_shard = 16;
  layout.zero_stage = 3;
  Plan plan = plan_with_batch("llama-3.1-8b", "fsdp2", 16, layout, 16);
  plan.cluster = *with_gpus(*find_cluster("aws-p4d"), 16);
  const StepReport report = simulate(plan).report;
  const std::vector<LinkTime> links = report.timeline.value_or(StepTimeline{}).stages[0].links;
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].tier, "nvlink");
  EXPECT_EQ(links[0].ranks, 1);
  EXPECT_EQ(links[1].tier, "efa");
  EXPECT_EQ(links[1].ranks, 2);
  EXPECT_NEAR(links[1].carried / links[1].sent, 2, 1e-6);
  // 12.5 GB/s each NIC.
  EXPECT_NEAR(links[1].busy.value(), static_cast<double>(links[1].carried.value()) / 12.5e9, 1e-6);
  EXPECT_LE(links[1].utilisation, 1 + 1e-9);
}

/// A layout of both axes on a cluster: 2 stages, tp inside a node, the rest data parallel.
Plan crossing(const std::string& cluster, std::int32_t gpus) {
  Layout layout;
  layout.tp = 2;
  layout.pp = 2;
  layout.dp_shard = gpus / 4;
  layout.zero_stage = 1;
  layout.order = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp_shard, Axis::dp_replicate};
  Plan plan = plan_with_batch("llama-3.1-8b", "megatron_ddp", gpus, layout, gpus);
  plan.cluster = *with_gpus(*find_cluster(cluster), gpus);
  plan.job.precision = DType::fp16;  // which V100 has too
  return plan;
}

TEST(Simulate, MovesNothingFasterThanItsLinksAllow) {
  for (const auto& [cluster, gpus] : {std::pair<const char*, int>{"dgx-h100", 32},
                                      {"aws-p4d", 64},
                                      {"dgx-1-v100", 16},
                                      {"h100-pcie", 8},
                                      {"gcp-a2-ultra", 32},
                                      {"meta-h100", 6144}}) {
    const Plan plan = crossing(cluster, gpus);
    const Simulation made = simulate(plan);
    for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
      const StageProgram& stage = made.program.stages[s];
      const Actor& actor = made.actor_of(s);
      for (std::size_t i = 0; i < stage.operations.size(); ++i) {
        const OpCost& cost = stage.costs[static_cast<std::size_t>(stage.operations[i].cost)];
        if (cost.collectives.empty() || cost.collectives.front().ends) continue;
        const CollectiveWork& work = cost.collectives.front();
        const double took = made.timeline.end[actor.base + i] - made.timeline.start[actor.base + i];
        const Seconds bound = collective_bound(plan.cluster, work.kind, Bytes(work.bytes),
                                               group_shape(plan.cluster, plan.layout, work.group));
        EXPECT_GE(took, bound.value() * (1 - 1e-9)) << cluster;
      }
      const StepTimeline timeline = made.report.timeline.value_or(StepTimeline{});
      for (const LinkTime& link : timeline.stages[s].links) {
        EXPECT_LE(link.utilisation, 1 + 1e-9) << cluster << " " << link.tier;
      }
    }
  }
}

TEST(Simulate, IsEqualToTheBitWhenRepeated) {
  EXPECT_EQ(report_json(simulate(sharded_llama_8b()).report),
            report_json(simulate(sharded_llama_8b()).report));
}

TEST(Simulate, WritesAReportThatReadsBack) {
  const std::string text = report_json(simulate(sharded_llama_8b()).report);
  const Result<StepReport> read = report_from_text(text, "report.json");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(report_json(*read), text);
}

TEST(Trace, IsJsonWithAnEventForEveryOperation) {
  const Plan plan = pipelined_llama_70b();
  const Simulation made = simulate(plan);
  std::string text;
  write_trace(plan, made, 64, [&text](std::string_view piece) { text += piece; });
  const nlohmann::json trace = nlohmann::json::parse(text);
  std::size_t operations = 0;
  std::set<std::string> names;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++operations;
    EXPECT_GE(event["dur"].get<double>(), 0);
    names.insert(event["name"].get<std::string>() + "@" + event["pid"].dump());
  }
  EXPECT_EQ(operations, made.work.operations);
  EXPECT_EQ(names.size(), made.work.operations);  // every operation has a name of its own
}

}  // namespace
}  // namespace shardwise::sim
