#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "simulator/clock/engine.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/step_report.h"
#include "tests/simulator/clock/pace.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

// The papers' bubbles, out of the report of a lowered plan on the virtual clock: a forward pass of
// a block takes 1, input and weight gradient 1 each unless said, and nothing else takes time.

Plan pipeline(PipelineSchedule schedule, std::int32_t pp, std::int32_t vpp, std::int64_t m) {
  Plan plan;
  plan.model = test::llama(48, 512, 1408, 8, 4, 32000);
  plan.engine = shardwise_engine();
  plan.layout.schedule = schedule;
  plan.layout.pp = pp;
  plan.layout.vpp = vpp;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), pp);
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = m;
  return plan;
}

/// The step with such times, and its report.
Simulation uniform(const Plan& plan, const Pace& pace = {}) {
  SimulationOptions options;
  options.contention = options.host = false;
  Simulation made = simulate(plan, options);
  for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
    const std::vector<OpCost>& costs = made.program.stages[s].costs;
    for (std::size_t c = 0; c < costs.size(); ++c) {
      made.prices[s][c] = {};
      if (costs[c].layers.empty()) continue;
      const LayerWork& work = costs[c].layers.front();
      const LayerRole role = plan.model.kinds[static_cast<std::size_t>(work.kind)].role;
      if (role != LayerRole::block) continue;
      made.prices[s][c].seconds = seconds_of(work.part, pace);
    }
  }
  made.work = representatives(made.program, made.prices);
  made.timeline = run_alone(made.work);
  made.met = meeting_times(made.work, made.timeline);
  fill_report(made.report, plan, made);
  return made;
}

/// Idle time over the useful time m (f + b), as the report says.
double reported_bubble(const Plan& plan) {
  const StepReport report = uniform(plan).report;
  return report.time.bubble / (report.step_time - report.time.bubble);
}

// Huang et al., arXiv:1811.06965, section 2.3; Narayanan et al., arXiv:2104.04473, section 2.2.
TEST(SimulatedSchedule, IdlesForPMinusOneOverM) {
  for (const std::int32_t p : {2, 4, 8}) {
    for (const std::int64_t m : {std::int64_t{p}, 3 * std::int64_t{p}}) {
      const double expected = (p - 1.0) / static_cast<double>(m);
      for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
        EXPECT_NEAR(reported_bubble(pipeline(schedule, p, 1, m)), expected, 1e-12) << p << " " << m;
      }
    }
  }
}

// arXiv:2104.04473, section 2.2.2; Lamy-Poirier, arXiv:2211.05953.
TEST(SimulatedSchedule, IdlesForPMinusOneOverMTimesVInChunks) {
  for (const std::int32_t p : {2, 4, 8}) {
    for (const std::int32_t v : {2, 3}) {
      const std::int64_t m = 2 * std::int64_t{p};
      const double expected = (p - 1.0) / static_cast<double>(m * v);
      for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::looped_bfs}) {
        EXPECT_NEAR(reported_bubble(pipeline(schedule, p, v, m)), expected, 1e-12) << p << " " << v;
      }
    }
  }
}

// Qi et al., arXiv:2401.10241, section 2.3: (p - 1)(f + b - 2 w), with b both gradients.
TEST(SimulatedSchedule, IdlesForTheForwardPassesAloneInZbH1) {
  for (const std::int32_t p : {2, 4, 8}) {
    const std::int64_t m = 2 * std::int64_t{p};
    EXPECT_NEAR(reported_bubble(pipeline(PipelineSchedule::zb_h1, p, 1, m)),
                (p - 1.0) / (3.0 * static_cast<double>(m)), 1e-12);
  }
}

// DeepSeek-V3, arXiv:2412.19437, table 2: (p/2 - 1)(F&B + B - 3 W). Nothing runs beside anything
// here, so F&B is F + B = 3. Folded on half as many stages: the same for 2 p stages of half the
// work.
TEST(SimulatedSchedule, IdlesAsTheTableOfDualPipeSays) {
  for (const std::int32_t p : {2, 4, 8}) {
    const std::int64_t m = 2 * std::int64_t{p};
    const double useful = 3.0 * static_cast<double>(m);
    EXPECT_NEAR(reported_bubble(pipeline(PipelineSchedule::dualpipe, p, 1, m)),
                (p / 2.0 - 1) * (3 + 2 - 3) / useful, 1e-12)
        << p;
    EXPECT_NEAR(reported_bubble(pipeline(PipelineSchedule::dualpipe_v, p, 1, m)),
                (p - 1) * (3 + 2 - 3) / (2 * useful), 1e-12)
        << p;
  }
}

// A micro-batch crosses every boundary between stages once with its activations and once with their
// gradients. A V of two chunks has its tip on one stage, and two arms of p - 1 boundaries; under
// DualPipe each of the two directions has the p - 1 of its half of the micro-batches.
TEST(SimulatedSchedule, SendsOneMessageForEachBoundaryEachWay) {
  struct Case {
    PipelineSchedule schedule;
    std::int32_t v;
    bool folded;
  };
  for (const Case& c :
       {Case{PipelineSchedule::gpipe, 1, false}, Case{PipelineSchedule::one_f_one_b, 1, false},
        Case{PipelineSchedule::one_f_one_b, 3, false}, Case{PipelineSchedule::looped_bfs, 3, false},
        Case{PipelineSchedule::zb_h1, 1, false}, Case{PipelineSchedule::zb_h2, 1, false},
        Case{PipelineSchedule::zb_v, 1, true}, Case{PipelineSchedule::dualpipe, 1, false},
        Case{PipelineSchedule::dualpipe_v, 1, true}}) {
    for (const std::int32_t p : {2, 4, 8}) {
      const std::int64_t m = 2 * std::int64_t{p};
      std::map<OpRole, std::int64_t> count;
      for (const StageProgram& stage : uniform(pipeline(c.schedule, p, c.v, m)).program.stages) {
        for (const ProgramOp& op : stage.operations) ++count[op.role];
      }
      const std::int64_t boundaries = c.folded ? 2 * (p - 1) : p * c.v - 1;
      for (const OpRole role : {OpRole::send_forward, OpRole::receive_forward,
                                OpRole::send_backward, OpRole::receive_backward}) {
        EXPECT_EQ(count[role], m * boundaries)
            << name_of(role) << " " << name_of(c.schedule) << " p " << p;
      }
    }
  }
}

/// Idle time of a stage's compute stream between its first pass and its last.
double idle_within(const Simulation& made, std::size_t stage) {
  const StageProgram& program = made.program.stages[stage];
  const std::size_t base = made.actor_of(stage).base;
  double first = made.timeline.length();
  double last = 0;
  double busy = 0;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (program.operations[i].stream != Stream::compute) continue;
    const double start = made.timeline.start[base + i];
    const double end = made.timeline.end[base + i];
    if (end == start) continue;
    first = std::min(first, start);
    last = std::max(last, end);
    busy += end - start;
  }
  return last - first - busy;
}

// arXiv:2401.10241, section 2.3: the bubble is that of the stage which takes longest from
// its first pass to its last. In blocks, of which a stage has 48 / p.
TEST(SimulatedSchedule, IdlesAsThePapersSayWherePassesAreUnequal) {
  for (const Pace& pace : {Pace{1, 1.1, 0.9}, Pace{1, 1.2, 0.8}, Pace{1, 1.05, 1}}) {
    const double f = pace.forward;
    const double b = pace.input;
    const double w = pace.weight;
    for (const std::int32_t p : {2, 4, 8}) {
      const auto idle = [&](PipelineSchedule schedule) {
        const Simulation made = uniform(pipeline(schedule, p, 1, 3 * std::int64_t{p}), pace);
        double most = 0;
        for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
          most = std::max(most, idle_within(made, s));
        }
        return most * p / 48;
      };
      EXPECT_NEAR(idle(PipelineSchedule::one_f_one_b), (p - 1) * (f + b + w), 1e-9) << p;
      EXPECT_NEAR(idle(PipelineSchedule::zb_h1), (p - 1) * (f + b - w), 1e-9) << p;
      EXPECT_NEAR(idle(PipelineSchedule::zb_h2), (p - 1) * (f + b - 2 * w), 1e-9) << p;
    }
  }
}

// Of the stage that idles longest, n = p/2 - 1: f and b - w before each of the last n pairs and
// input gradients, f before the first pair; where b is longer than f, its excess as well, less one
// f (F6). Table 2 of arXiv:2412.19437 with F&B = F + B has n (f + 2 b - w): as much where b = f.
TEST(SimulatedSchedule, IdlesUnderDualPipeAsItsLongestStage) {
  for (const double f : {0.5, 1.0, 2.0}) {
    for (const double b : {0.5, 1.0, 1.5, 2.0, 4.0}) {
      for (const double w : {0.25, 1.0, 1.5}) {
        for (const std::int32_t p : {4, 6, 8, 16}) {
          const auto m = 3 * std::int64_t{p};
          const Simulation made = uniform(pipeline(PipelineSchedule::dualpipe, p, 1, m), {f, b, w});
          double most = 0;
          for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
            most = std::max(most, idle_within(made, s));
          }
          const double n = p / 2.0 - 1;
          EXPECT_NEAR(most * p / 48,
                      n * (2 * f + std::max(0.0, b - w)) + std::max(0.0, n * (b - f) - f), 1e-9)
              << f << " " << b << " " << w << " p " << p;
        }
      }
    }
  }
}

// Sections 2.2 and 6: no bubble within a stage; what is left is the stagger of the stages, which
// the next step fills (section 4).
TEST(SimulatedSchedule, LeavesNoBubbleWithinAStageInZbH2AndZbV) {
  for (const std::int32_t p : {2, 4, 8}) {
    for (const auto schedule : {PipelineSchedule::zb_h2, PipelineSchedule::zb_v}) {
      const Simulation made = uniform(pipeline(schedule, p, 1, 3 * std::int64_t{p}));
      for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
        EXPECT_NEAR(idle_within(made, s), 0, 1e-9) << p << " stage " << s;
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
