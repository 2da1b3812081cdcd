#include "simulator/workload/price_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/lowering/lower.h"
#include "planner/lowering/price.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/clock/simulate.h"
#include "simulator/workload/paint.h"

namespace shardwise::sim {
namespace {

/// Recompute, tensor and pipeline parallel, data parallel across nodes.
Plan pipelined_llama_8b() {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 32);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.tp = 4;
  plan.layout.sequence_parallel = true;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 4;
  plan.layout.zero_stage = 1;
  plan.layout.recompute = Recompute::full;
  plan.job.global_batch_size = 32;
  return plan;
}

SimulationOptions scaled(const PriceScale& scale, Granularity granularity = Granularity::layer) {
  SimulationOptions options;
  options.granularity = granularity;
  options.scales = {scale};
  return options;
}

/// Durations of all operations of a stage, by operation.
std::vector<double> durations(const Simulation& made, std::size_t stage) {
  std::vector<double> found(made.program.stages[stage].operations.size());
  for (const WorkOp& op : made.work.programs[stage].operations) found[op.index] = op.duration;
  return found;
}

TEST(PriceScale, TakesTheFactorOfEveryOperationOfItsKindAndOfNoOther) {
  const Plan plan = pipelined_llama_8b();
  for (const Granularity granularity : {Granularity::layer, Granularity::kernel}) {
    SimulationOptions plain;
    plain.granularity = granularity;
    const Simulation before = simulate(plan, plain);
    for (std::size_t p = 0; p < kPaintWords.size(); ++p) {
      const auto kind = static_cast<Paint>(p);
      const Simulation after = simulate(plan, scaled({kind, 0.3}, granularity));
      for (std::size_t s = 0; s < before.program.stages.size(); ++s) {
        const std::vector<double> old = durations(before, s);
        const std::vector<double> now = durations(after, s);
        ASSERT_EQ(old.size(), now.size());
        for (std::size_t i = 0; i < old.size(); ++i) {
          const bool of_kind = paint_of(before.program.stages[s].operations[i]) == kind;
          ASSERT_EQ(now[i], of_kind ? old[i] * 0.3 : old[i]) << kPaintWords[p] << " " << i;
        }
      }
    }
  }
}

TEST(PriceScale, OfAllKindsScalesTheWholeStep) {
  const Plan plan = pipelined_llama_8b();
  SimulationOptions options;
  options.host = false;  // its pace is no price
  const Simulation before = simulate(plan, options);
  for (std::size_t p = 0; p < kPaintWords.size(); ++p) {
    options.scales.push_back({static_cast<Paint>(p), 0.5});
  }
  const Simulation after = simulate(plan, options);
  for (std::size_t i = 0; i < before.timeline.end.size(); ++i) {
    ASSERT_EQ(after.timeline.end[i], before.timeline.end[i] / 2) << i;
  }
}

TEST(PriceScale, OfFactorOneChangesNothing) {
  const Plan plan = pipelined_llama_8b();
  const Simulation before = simulate(plan);
  for (const PriceScale& scale : {PriceScale{Paint::backward, 1}, PriceScale{TrafficAxis::tp, 1},
                                  PriceScale{TrafficAxis::dp, 1}, PriceScale{TierNumber{0}, 1},
                                  PriceScale{TierNumber{1}, 1}}) {
    const Simulation after = simulate(plan, scaled(scale));
    EXPECT_EQ(after.timeline.end, before.timeline.end);
    EXPECT_EQ(after.report.step_time, before.report.step_time);
  }
}

TEST(PriceScale, IsTheSimulationOfThePricesThatItChanged) {
  const Plan plan = pipelined_llama_8b();
  const Simulation asked = simulate(plan, scaled({Paint::forward, 0.5}));
  // The same by hand: this program's costs of forward passes are of nothing else.
  const StepProgram program = lower(plan, Granularity::layer);
  Prices prices = prices_of(plan, program, Transport::usual);
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (std::size_t c = 0; c < program.stages[s].costs.size(); ++c) {
      const std::vector<LayerWork>& layers = program.stages[s].costs[c].layers;
      if (layers.empty() || layers.front().part != LayerPart::forward) continue;
      prices[s][c].seconds *= 0.5;
      prices[s][c].rest *= 0.5;
      for (std::uint32_t i = prices[s][c].inside.begin; i != prices[s][c].inside.end; ++i) {
        prices[s][i].seconds *= 0.5;
      }
    }
  }
  const Timeline timeline = run_shared(
      representatives(program, prices, plan.layout, shared_links(plan.cluster), asked.work.launch));
  EXPECT_EQ(asked.timeline.end, timeline.end);
}

// A pass takes its compute, as slow as on the slowest GPU, and the axes that stop it.
TEST(PriceScale, OfAnAxisShortensPassesByWhatItStopsThem) {
  const Plan plan = pipelined_llama_8b();
  const std::vector<LayerTime> layers = layer_passes(plan);
  const Simulation before = simulate(plan);
  const Simulation after = simulate(plan, scaled({TrafficAxis::tp, 0.25}));
  int passes = 0;
  for (std::size_t c = 0; c < before.program.stages[0].costs.size(); ++c) {
    const OpCost& cost = before.program.stages[0].costs[c];
    if (cost.layers.empty()) continue;
    const LayerWork& work = cost.layers.front();
    if (work.part != LayerPart::forward) continue;
    const PassTime& pass = layers[static_cast<std::size_t>(work.kind)].forward;
    if (pass.tp <= Seconds(0)) continue;
    ++passes;
    const double excess = before.prices[0][c].seconds - pass.stream().value();
    EXPECT_NEAR(after.prices[0][c].seconds, pass.compute().value() + excess + pass.tp.value() / 4,
                1e-12);
    const double communicates =
        after.prices[0][c].moved_share * (after.prices[0][c].seconds - excess);
    EXPECT_NEAR(communicates, pass.tp.value() / 4, 1e-12);
  }
  EXPECT_GT(passes, 0);
  EXPECT_LT(after.report.step_time, before.report.step_time);
}

// What an axis holds up goes with its factor; what the others hold up stays.
TEST(PriceScale, OfAnAxisScalesWhatTheReportSaysOfItInsidePasses) {
  Plan plan = pipelined_llama_8b();
  plan.layout.cp = 2;
  plan.layout.dp_shard = 2;
  const auto by_axis = [&](const SimulationOptions& options) {
    const StepReport report = simulate(plan, options).report;
    std::map<std::string, AxisTime> axes;
    for (const AxisTime& axis : report.by_axis) axes[axis.axis] = axis;
    EXPECT_NEAR(report.time.tp_exposed.value(), axes["tp"].exposed.value(), 1e-9);
    return axes;
  };
  std::map<std::string, AxisTime> before = by_axis({});
  ASSERT_GT(before["tp"].exposed, Seconds(0));
  ASSERT_GT(before["cp"].exposed, Seconds(0));
  for (const double factor : {0.01, 0.5, 2.0}) {
    SCOPED_TRACE(factor);
    std::map<std::string, AxisTime> after = by_axis(scaled({TrafficAxis::tp, factor}));
    EXPECT_NEAR(after["tp"].exposed / before["tp"].exposed, factor, 1e-6);
    EXPECT_NEAR(after["tp"].total / before["tp"].total, factor, 1e-6);
    EXPECT_NEAR(after["cp"].exposed / before["cp"].exposed, 1, 1e-6);
  }
}

TEST(PriceScale, OfATierScalesWhatTheReportSaysOfPassesOnItsLinks) {
  const Plan plan = pipelined_llama_8b();
  const auto tp_of = [&](const SimulationOptions& options) {
    return simulate(plan, options).report.time.tp_exposed;
  };
  const double left = tp_of(scaled({TierNumber{0}, 0.5})) / tp_of({});
  EXPECT_GT(left, 0.5);  // latencies stay
  EXPECT_LT(left, 0.75);
}

TEST(PriceScale, OfAnAxisTakesTheFactorOfItsTransfers) {
  const Plan plan = pipelined_llama_8b();
  const Simulation before = simulate(plan);
  const Simulation after = simulate(plan, scaled({TrafficAxis::pp, 8}));
  for (std::size_t s = 0; s < 2; ++s) {
    const std::vector<double> old = durations(before, s);
    const std::vector<double> now = durations(after, s);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const Stream stream = before.program.stages[s].operations[i].stream;
      const bool message = stream == Stream::send || stream == Stream::receive;
      ASSERT_EQ(now[i], message ? old[i] * 8 : old[i]);
    }
  }
  EXPECT_GT(after.report.step_time, before.report.step_time);
}

// Of a ring over two tiers: NVLink carries as many bytes as InfiniBand, in less time.
TEST(PriceScale, OfATierTakesTheFactorOfTheTimeOnItsLinksAlone) {
  const Plan plan = pipelined_llama_8b();
  const Simulation before = simulate(plan);
  for (const double factor : {0.5, 2.0}) {
    const Simulation after = simulate(plan, scaled({TierNumber{1}, factor}));
    int across = 0;
    for (std::size_t c = 0; c < before.program.stages[0].costs.size(); ++c) {
      const CostPrice& old = before.prices[0][c];
      const CostPrice& now = after.prices[0][c];
      if (before.program.stages[0].costs[c].collectives.empty() || old.link_share[1] == 0) {
        if (before.program.stages[0].costs[c].layers.empty()) {
          EXPECT_EQ(now.seconds, old.seconds);
        }
        continue;
      }
      ++across;
      const double busy = old.link_share[1] * old.seconds;
      EXPECT_NEAR(now.link_share[1] * now.seconds, busy * factor, 1e-12);
      EXPECT_NEAR(now.link_share[0] * now.seconds, old.link_share[0] * old.seconds, 1e-12);
      EXPECT_NEAR(now.seconds, old.seconds - busy * (1 - factor), 1e-12);
    }
    EXPECT_GT(across, 0);
  }
}

TEST(PriceScale, OfATierMakesNoTransferShorterThanItsOtherTiers) {
  const Plan plan = pipelined_llama_8b();
  const Simulation after = simulate(plan, scaled({TierNumber{1}, 1e-9}));
  for (std::size_t c = 0; c < after.program.stages[0].costs.size(); ++c) {
    EXPECT_LE(after.prices[0][c].link_share[0], 1);
  }
  EXPECT_LT(after.report.step_time, simulate(plan).report.step_time);
}

}  // namespace
}  // namespace shardwise::sim
