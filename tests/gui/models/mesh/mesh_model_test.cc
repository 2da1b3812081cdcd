#include "gui/models/mesh/mesh_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "gui/models/commands/commands.h"
#include "gui/models/mesh/mesh_state.h"
#include "gui/models/session/session.h"
#include "planner/estimate/estimate.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/search/advice/best_layout.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"
#include "tests/gui/small_plan.h"
#include "tests/support/models.h"

namespace shardwise::view {
namespace {

TEST(Mesh, HasEachRankInOneBoxAndAsManyInEveryStage) {
  const Plan plan = test::two_node_plan();
  const MeshView mesh = mesh_view(plan);
  ASSERT_EQ(mesh.boxes.size(), 16U);
  std::map<std::int32_t, int> of_stage;
  for (std::int64_t rank = 0; rank < 16; ++rank) {
    const MeshBox& box = mesh.boxes[mesh.box_of(rank)];
    EXPECT_EQ(box.rank, rank);
    ++of_stage[box.stage];
  }
  EXPECT_EQ(of_stage, (std::map<std::int32_t, int>{{0, 8}, {1, 8}}));
}

TEST(Mesh, GroupsAreThePlannersForEveryRankAndOrder) {
  Plan plan = test::two_node_plan();
  for (const Axis first : {Axis::tp, Axis::pp, Axis::dp_replicate}) {
    std::swap(plan.layout.order[0], *std::ranges::find(plan.layout.order, first));
    for (std::int64_t rank = 0; rank < 16; ++rank) {
      const std::vector<RankGroup> groups = groups_of(plan.layout, rank);
      EXPECT_EQ(groups.size(), 4U);
      for (const RankGroup& group : groups) {
        EXPECT_EQ(group.ranks, group_ranks(plan.layout, kShownGroups[group.shown].kind, rank));
        EXPECT_EQ(group.ranks.size(), 2U);
        EXPECT_THAT(group.ranks, testing::Contains(rank));
      }
      // The ranks of its stage are those that its pipeline does not lead to.
      const std::int32_t stage = stage_of(plan.layout, rank);
      EXPECT_EQ(group_ranks(plan.layout, GroupKind::pp, rank)[static_cast<std::size_t>(stage)],
                rank);
    }
  }
}

TEST(Mesh, DrawsNodesWhereThereAreTooManyGpus) {
  Plan plan = test::small_plan();
  plan.cluster.gpus = 16'384;
  plan.layout.dp_replicate = 1024;
  plan.layout.dp_shard = 4;
  plan.layout.pp = 4;
  const MeshView mesh = mesh_view(plan);
  EXPECT_EQ(mesh.ranks, 16'384);
  EXPECT_TRUE(mesh.whole_nodes);
  ASSERT_EQ(mesh.boxes.size(), 2048U);
  for (std::size_t node = 0; node < mesh.boxes.size(); ++node) {
    EXPECT_EQ(mesh.boxes[node].rank, static_cast<std::int64_t>(8 * node));
    EXPECT_EQ(mesh.boxes[node].stage, static_cast<std::int32_t>(node / 512));
    EXPECT_EQ(mesh.boxes[node].last_stage, mesh.boxes[node].stage);
  }
  EXPECT_EQ(mesh.box_of(16'383), 2047U);
  // A pipeline within each node.
  plan.layout.order = {Axis::pp, Axis::tp, Axis::cp, Axis::ep, Axis::dp_shard, Axis::dp_replicate};
  EXPECT_EQ(mesh_view(plan).boxes.front().last_stage, 3);
}

TEST(Mesh, SaysWhichLinksAGroupCrosses) {
  Plan plan = test::two_node_plan();
  EXPECT_EQ(links_text(plan.cluster, plan.layout),
            "tensor parallel 2: nvlink\ndata parallel 2: nvlink\nreplicas 2: nvlink\n"
            "pipeline 2: infiniband");
  plan.layout.order = {Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::tp, Axis::cp, Axis::ep};
  EXPECT_THAT(links_text(plan.cluster, plan.layout),
              testing::StartsWith("tensor parallel 2: infiniband\n"));
}

TEST(MeshFacts, AreThoseOfTheSimulatedReport) {
  const Plan plan = test::two_node_plan();
  const MeshFacts facts = mesh_facts(plan, {});
  const sim::Simulation simulation = sim::simulate(plan);
  const StepTimeline& timeline = sim::timeline_of(simulation.report);
  EXPECT_EQ(facts.step, simulation.report.step_time);
  ASSERT_EQ(facts.stages.size(), 2U);
  Seconds longest;
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(facts.stages[stage].computing, timeline.stages[stage].computing);
    EXPECT_EQ(facts.stages[stage].peak, simulation.report.stages[stage].peak_total());
    longest = std::max(longest, facts.stages[stage].computing);
  }
  EXPECT_EQ(facts.stages[facts.slowest].computing, longest);
  for (const MeshColour colour : {MeshColour::time, MeshColour::memory, MeshColour::sent}) {
    const std::vector<double> shades = box_shades(mesh_view(plan), &facts, colour);
    EXPECT_EQ(shades.size(), 16U);
    EXPECT_EQ(*std::ranges::max_element(shades), 1);
    EXPECT_EQ(*std::ranges::min_element(shades), 0);
    EXPECT_NE(stage_ends(facts, colour)[0], stage_ends(facts, colour)[1]);
  }
  const MeshView mesh = mesh_view(plan);
  const auto shades = box_shades(mesh, &facts, MeshColour::time);
  for (const MeshBox& box : mesh.boxes) {
    EXPECT_EQ(shades[mesh.box_of(box.rank)] == 1,
              box.stage == static_cast<std::int32_t>(facts.slowest));
  }
}

// Two GPUs share a NIC: of three stages side by side, a rank shares one with the stage before or
// with the stage after.
TEST(MeshFacts, HaveATimeOfItsOwnForEachRankWhereLinksAreShared) {
  Plan plan = test::two_node_plan();
  plan.model = test::llama(18, 2048, 5632, 16, 8, 32'000);
  plan.cluster = *with_gpus(*find_cluster("aws-p4d"), 24);
  plan.layout.tp = 1;
  plan.layout.pp = 3;
  plan.layout.dp_shard = 4;
  plan.layout.sequence_parallel = false;
  plan.layout.order = {Axis::pp, Axis::tp, Axis::cp, Axis::ep, Axis::dp_shard, Axis::dp_replicate};
  const MeshFacts facts = mesh_facts(plan, {});
  ASSERT_EQ(facts.computing.size(), 24U);
  sim::SimulationOptions every;
  every.all_ranks = true;
  const sim::Simulation all = sim::simulate(plan, every);
  const MeshView mesh = mesh_view(plan);
  std::vector<OperationTime> operations;
  for (const sim::Actor& actor : all.work.actors) {
    const Seconds alone =
        stage_timeline(sim::recorded(sim::run_times(all, actor)), operations).computing;
    const MeshBox& box = mesh.boxes[static_cast<std::size_t>(actor.rank)];
    EXPECT_NEAR(computing_of(facts, box) / alone, 1, 1e-9) << actor.rank;
  }
}

TEST(MeshFacts, SayWhyAVeryLongStepIsNotSimulated) {
  Plan plan = test::small_plan(1);
  plan.job.global_batch_size = 200'000;
  const MeshFacts facts = mesh_facts(plan, {});
  EXPECT_TRUE(facts.stages.empty());
  EXPECT_THAT(facts.problem, testing::HasSubstr("is not simulated"));
  EXPECT_EQ(box_shades(mesh_view(plan), &facts, MeshColour::time).size(), 1U);
  EXPECT_TRUE(traffic_table(plan, facts, 0).rows.empty());
}

TEST(Traffic, RowsSumToTheReportsBytesOfEveryTier) {
  const Plan plan = test::two_node_plan();
  const MeshFacts facts = mesh_facts(plan, {});
  const sim::Simulation simulation = sim::simulate(plan);
  const StepTimeline& timeline = sim::timeline_of(simulation.report);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const TrafficTable table = traffic_table(plan, facts, stage);
    ASSERT_EQ(table.tiers.size(), 2U);
    EXPECT_GE(table.rows.size(), 4U);
    for (std::size_t tier = 0; tier < 2; ++tier) {
      Bytes sum;
      for (const TrafficRow& row : table.rows) sum += row.bytes[tier];
      EXPECT_EQ(sum, table.totals[tier]);
      const auto link =
          std::ranges::find(timeline.stages[stage].links, table.tiers[tier], &LinkTime::tier);
      ASSERT_NE(link, timeline.stages[stage].links.end());
      EXPECT_EQ(sum, link->sent);
      EXPECT_NEAR(table.busy[tier], link->utilisation, 0.01 * link->utilisation);
    }
    for (const TrafficRow& row : table.rows) {
      EXPECT_FALSE(row.use.empty());
      EXPECT_GT(row.ranks, 1) << row.use;
    }
  }
}

TEST(Order, IsReadAndWrittenByItsMovingAxes) {
  const Layout layout = test::two_node_plan().layout;
  EXPECT_EQ(order_text(layout, layout.order), "tp-dp_shard-dp_replicate-pp");
  const auto order = read_order(layout, "pp-tp-dp_replicate-dp_shard");
  ASSERT_TRUE(order);
  EXPECT_EQ(order_text(layout, *order), "pp-tp-dp_replicate-dp_shard");
  EXPECT_EQ(order_text(layout, *read_order(layout, "pp-tp")), "pp-dp_shard-dp_replicate-tp");
  for (const char* wrong : {"", "tp-tp", "tp-xp", "tp-", "-", "tp,pp"}) {
    EXPECT_FALSE(read_order(layout, wrong)) << wrong;
  }
}

/// Opened on the mesh of two nodes.
class MeshCommands : public testing::Test {
 protected:
  MeshCommands() {
    session_.settle();
    session_.set_workspace(Workspace::mesh);
    session_.settle();
  }
  std::string run(const std::string& line) {
    std::string problem = run_command(session_, line);
    session_.settle();
    return problem;
  }
  const AppState& state() const { return session_.state(); }
  const MeshState& mesh() const { return session_.state().mesh; }
  Session session_{test::two_node_plan(), Timing::fitting};
};

TEST_F(MeshCommands, LayRanksOutInAnotherOrder) {
  EXPECT_EQ(run("mesh.try pp-tp-dp_shard-dp_replicate"), "");
  ASSERT_TRUE(mesh().tried);
  Plan plan = test::two_node_plan();
  plan.layout.order = *mesh().tried;
  const Seconds step = test::report_of(plan).step_time;
  EXPECT_EQ(mesh().tried_step, step);
  EXPECT_EQ(state().plan.layout, test::two_node_plan().layout);  // only tried
  EXPECT_EQ(run("mesh.order pp-tp-dp_shard-dp_replicate"), "");
  EXPECT_EQ(state().plan.layout, plan.layout);
  EXPECT_EQ(state().report.step_time, step);
  EXPECT_FALSE(mesh().tried);
  EXPECT_EQ(mesh().view.boxes[1].stage, 1);  // neighbours are stages now
  const auto own = std::ranges::find(mesh().facts->orders, plan.layout.order, &PricedOrder::order);
  ASSERT_NE(own, mesh().facts->orders.end());
  EXPECT_EQ(own->cost.step_time, step);
  EXPECT_EQ(run("question.undo"), "");
  EXPECT_EQ(state().plan.layout, test::two_node_plan().layout);
}

TEST_F(MeshCommands, SayWhatALinkOfAnotherBandwidthIsWorth) {
  EXPECT_FALSE(mesh().stretch.any());
  EXPECT_EQ(run("mesh.bandwidth infiniband 4"), "");
  Plan faster = test::two_node_plan();
  faster.cluster.tiers[1].bandwidth = 4 * faster.cluster.tiers[1].bandwidth;
  const LinkStretch& stretch = mesh().stretch;
  ASSERT_TRUE(stretch.any());
  EXPECT_EQ(stretch.report->step_time, test::report_of(faster).step_time);
  EXPECT_LT(stretch.report->step_time, state().report.step_time);
  EXPECT_EQ(stretch.simulated, sim::simulate(faster).report.step_time);
  EXPECT_EQ(stretch.simulated_before, sim::simulate(test::two_node_plan()).report.step_time);
  ASSERT_TRUE(stretch.best);
  const BestLayout best =
      best_layout({&faster.model, &faster.cluster, &faster.job, &faster.engine, false, {}, {}});
  EXPECT_EQ(stretch.best->layout, best.report->layout);
  EXPECT_EQ(state().plan.cluster, test::two_node_plan().cluster);  // the question is as it was
  // Its worth: with that much more for a GPU-hour, tokens cost what they did.
  Plan dearer = faster;
  const double price = *faster.cluster.gpu.price_per_hour;
  dearer.cluster.price_per_gpu_hour =
      price * (state().report.step_time / stretch.report->step_time);
  EXPECT_NEAR(
      test::report_of(dearer).dollars_per_1e9_tokens / state().report.dollars_per_1e9_tokens, 1,
      1e-12);
  const auto words = stretch_words(state().plan, state().report, stretch, nullptr);
  EXPECT_THAT(words[0], testing::MatchesRegex("step .* to .*, -.* %.*"));
  EXPECT_THAT(words[2], testing::StartsWith("worth +$"));
  EXPECT_EQ(run("mesh.take"), "");
  EXPECT_EQ(state().plan.cluster, faster.cluster);
  EXPECT_FALSE(mesh().stretch.any());
  EXPECT_EQ(run("mesh.take"), "every link has the bandwidth that it has");
}

TEST_F(MeshCommands, FiftyDragsOfABandwidthEndOnTheLastOnesAnswer) {
  session_.worker().hold();
  for (int drag = 1; drag <= 50; ++drag) {
    session_.set_bandwidth(drag % 2 == 0 ? "nvlink" : "infiniband", 1 + 0.1 * drag);
    EXPECT_FALSE(mesh().stretch.simulated);  // none of an older one
  }
  session_.worker().release();
  session_.settle();
  const Plan last = stretched(test::two_node_plan(), {1 + 0.1 * 50, 1 + 0.1 * 49});
  EXPECT_EQ(mesh().stretch.report->step_time, test::report_of(last).step_time);
  EXPECT_EQ(mesh().stretch.simulated, sim::simulate(last).report.step_time);
  EXPECT_EQ(run("mesh.reset"), "");
  EXPECT_FALSE(mesh().stretch.any());
}

TEST_F(MeshCommands, CurvesAreEstimatesOfTheLayout) {
  ASSERT_EQ(mesh().stretch.curves.size(), 2U);
  for (std::size_t tier = 0; tier < 2; ++tier) {
    const StretchCurve& curve = mesh().stretch.curves[tier];
    EXPECT_EQ(curve.factors.front(), kLeastStretch);
    EXPECT_EQ(curve.factors.back(), kMostStretch);
    std::vector<double> factors = {1, 1};
    factors[tier] = curve.factors[3];
    EXPECT_EQ(curve.step_times[3],
              test::report_of(stretched(test::two_node_plan(), factors)).step_time);
    EXPECT_TRUE(std::ranges::is_sorted(curve.step_times, std::ranges::greater()));
  }
}

TEST_F(MeshCommands, SayWhatIsWrong) {
  EXPECT_THAT(run("mesh.order tp-tp"), testing::StartsWith("tp-tp is no order of axes: tp-dp"));
  EXPECT_THAT(run("mesh.rank 16"), testing::HasSubstr("the plan has 16 ranks"));
  EXPECT_THAT(run("mesh.rank first"), testing::StartsWith("rank: first is not"));
  EXPECT_EQ(run("mesh.colour heat"), "heat is none of stage, time, memory, sent");
  EXPECT_EQ(run("mesh.bandwidth ethernet 2"),
            "ethernet is no link of these GPUs: nvlink, infiniband");
  EXPECT_EQ(run("mesh.bandwidth nvlink 9"), "factor: 9 is not a number from 0.125 to 8");
  EXPECT_THAT(run("mesh.bandwidth nvlink"), testing::StartsWith("say how many times"));
}

TEST_F(MeshCommands, PinARankUntilThePlanHasItNoMore) {
  EXPECT_EQ(run("mesh.rank 15"), "");
  EXPECT_EQ(mesh().pinned, 15);
  EXPECT_EQ(run("question.set gpus 8"), "");
  EXPECT_FALSE(mesh().pinned);
  EXPECT_EQ(run("mesh.rank 3"), "");
  EXPECT_EQ(run("mesh.rank"), "");
  EXPECT_FALSE(mesh().pinned);
}

}  // namespace
}  // namespace shardwise::view
