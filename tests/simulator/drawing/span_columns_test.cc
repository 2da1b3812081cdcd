#include "simulator/drawing/span_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/step_report.h"
#include "simulator/workload/paint.h"

namespace shardwise::sim {
namespace {

Plan sharded_stages() {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  plan.engine = *find_engine("fsdp2");
  plan.layout.pp = 2;
  plan.layout.dp_shard = 8;
  plan.layout.zero_stage = 2;
  plan.job.global_batch_size = 32;
  return plan;
}

TEST(SpanColumns, HaveEveryOperationOfTheRankOnceWithItsTimes) {
  const Simulation made = simulate(sharded_stages());
  for (const Actor& actor : made.work.actors) {
    const StageRunTimes run = run_times(made, actor);
    const StageProgram& program = *run.work->program;
    const RankSpans rank = rank_spans(recorded(run), actor.rank);
    EXPECT_EQ(rank.stage, static_cast<std::size_t>(program.stage));
    std::vector<int> seen(program.operations.size());
    for (const SpanColumns& spans : rank.streams) {
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const std::uint32_t index = spans.operation[i];
        const ProgramOp& op = program.operations[index];
        ++seen[index];
        EXPECT_EQ(op.stream, spans.stream);
        EXPECT_EQ(spans.start[i], run.start[index]);
        EXPECT_EQ(spans.end[i], run.end[index]);
        EXPECT_EQ(spans.active_start[i], span_of(run, index).met);
        EXPECT_EQ(spans.kind[i], paint_of(op));
        EXPECT_EQ(spans.microbatch[i], op.microbatch);
        EXPECT_EQ(spans.layer[i], op.layer);
        if (i > 0) {
          EXPECT_LE(spans.end[i - 1], spans.start[i]);
        }
      }
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int count) { return count == 1; }));
  }
}

TEST(SpanColumns, AreExposedAsTheReportSays) {
  const Simulation made = simulate(sharded_stages());
  for (std::size_t s = 0; s < 2; ++s) {
    const RankSpans rank = rank_spans(recorded(run_times(made, s)), 0);
    double sum = 0;
    for (const StreamTime& stream : made.report.timeline->stages[s].streams) {
      double of_stream = 0;
      for (const SpanColumns& spans : rank.streams) {
        if (name_of(spans.stream) != stream.stream) continue;
        for (const float each : spans.exposed) of_stream += static_cast<double>(each);
      }
      EXPECT_NEAR(of_stream, stream.exposed.value(), 1e-6 * made.timeline.length());
      sum += stream.exposed.value();
    }
    double stretches = 0;
    for (const Exposed& each : exposed_stretches(rank)) {
      stretches += (each.to - each.from) * each.count();
    }
    EXPECT_NEAR(stretches, sum, 1e-9 * made.timeline.length());
  }
}

TEST(ExposedStretches, AreWhereSomethingMovesAndNothingIsComputed) {
  const Simulation made = simulate(sharded_stages());
  const RankSpans rank = rank_spans(recorded(run_times(made, 0)), 0);
  const std::vector<Exposed> found = exposed_stretches(rank);
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) {
    const double time = made.timeline.length() * (i + 0.37) / kSamples;
    std::uint16_t moving = 0;
    bool computing = false;
    for (const SpanColumns& spans : rank.streams) {
      for (std::size_t k = 0; k < spans.size(); ++k) {
        const bool computes = spans.stream == Stream::compute;
        const double from = computes ? spans.start[k] : spans.active_start[k];
        if (from > time || time >= spans.end[k]) continue;
        computing |= computes;
        moving = static_cast<std::uint16_t>(moving | 1U << static_cast<unsigned>(spans.stream));
      }
    }
    const auto there = std::ranges::find_if(
        found, [&](const Exposed& each) { return each.from <= time && time < each.to; });
    ASSERT_EQ(there == found.end() ? 0 : there->streams, computing ? 0 : moving) << time;
  }
}

TEST(ActorOfRank, StandsForARankOfTheSameStage) {
  const Plan plan = sharded_stages();
  const Simulation made = simulate(plan);
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    const std::vector<std::int64_t> pipeline = group_ranks(plan.layout, GroupKind::pp, rank);
    for (std::size_t stage = 0; stage < pipeline.size(); ++stage) {
      EXPECT_EQ(made.actor_of(pipeline[stage], stage).program, stage);
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
