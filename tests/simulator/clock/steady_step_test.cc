#include "simulator/clock/steady_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/plan/names.h"
#include "simulator/clock/prepare.h"
#include "simulator/clock/repeated_part.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/clock/steady_period.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

double whole_length(const Plan& plan, SimulationOptions options) {
  options.every_microbatch = true;
  return simulated_length(plan, options).value();
}

/// How often few micro-batches had to be enough, and were.
struct Proved {
  int asked = 0;
  int proved = 0;
};

/// What is compared of drawn layouts: equal to the step that is run whole.
class Compared {
 public:
  void expect_equal(const Plan& plan, const SimulationOptions& options, const std::string& named) {
    ++all_;
    const double whole = whole_length(plan, options);
    const std::string layout = named + " " + plan.engine.name + " " + plan.model.name + " batch " +
                               std::to_string(plan.job.global_batch_size) + " " +
                               test::text_of(plan.layout);
    EXPECT_NEAR(simulated_length(plan, options).value() / whole, 1, 1e-9) << layout;
    Proved& of = by_schedule_[std::string(name_of(plan.layout.schedule)) +
                              (plan.layout.pp == 1 ? " of one stage" : "")];
    ++of.asked;
    if (steady_step(plan, options)) ++of.proved;
  }
  int all() const { return all_; }
  int proved() const {
    int sum = 0;
    for (const auto& [schedule, each] : by_schedule_) sum += each.proved;
    return sum;
  }
  void record() const {
    for (const auto& [schedule, each] : by_schedule_) {
      ::testing::Test::RecordProperty(
          schedule, std::to_string(each.proved) + " of " + std::to_string(each.asked));
    }
  }

 private:
  int all_ = 0;
  std::map<std::string, Proved> by_schedule_;
};

/// Layouts of all engines, batches that are long for them, and what may be asked of the clock.
int drawn_in_all() {
  static const bool whole = std::getenv("SHARDWISE_WHOLE_DRAWS") != nullptr;
  return whole ? 2000 : test::kSanitized ? 20 : 80;
}

SimulationOptions options_of(std::uint32_t number) {
  SimulationOptions options;
  options.contention = number % 4 != 1;
  options.host = number % 8 != 2;
  options.in_issue_order = number % 16 == 6;
  options.shared_links = number % 16 != 7;
  if (number % 16 == 12) options.granularity = Granularity::kernel;
  if (number % 16 == 9) options.transport = Transport::copy_engines;
  if (number % 16 == 15) options.scales = {{TrafficAxis::dp, 0.5}};
  return options;
}

/// Makes a drawn layout a pipeline of 2 to 16 stages.
template <class Random>
void lengthen(Layout& l, std::int64_t gpus, Random&& random) {
  l.pp = 2 << random() % 4;
  l.vpp = random() % 3 == 0 ? 2 << random() % 2 : 1;
  l.tp = 1 << random() % 2;
  l.cp = l.ep = l.etp = l.dp_replicate = 1;
  l.first_stage_layers = l.last_stage_layers = 0;
  l.dp_shard =
      static_cast<std::int32_t>(std::max<std::int64_t>(1, gpus / (std::int64_t{l.pp} * l.tp)));
  l.micro_batch_size = 1;
}

TEST(SteadyStep, IsTheWholeStepInDrawnLayouts) {
  Compared compared;
  std::mt19937 numbers(20261130);
  const auto random = [&] { return static_cast<std::uint32_t>(numbers()); };
  std::uint32_t number = 0;
  while (compared.all() < drawn_in_all()) {
    for (const std::string& engine : engine_names()) {
      ++number;
      const std::int64_t gpus = 8 << random() % 3;
      Plan plan = random() % 3 == 0 ? mixture_example(engine, gpus) : example(engine, gpus);
      plan.job.global_batch_size = random() % 2 == 0 ? 960 : 2048;
      const LayoutQuestion question =
          layout_question(plan.model, plan.cluster, plan.job, plan.engine);
      test::Sampler sampler(question, random());
      const bool pipelines = plan.engine.pipeline && random() % 4 != 0;
      for (int tries = 0; tries < 100'000; ++tries) {
        plan.layout = sampler.draw();
        if (pipelines) lengthen(plan.layout, gpus, random);
        if (!sampler.legal(plan.layout)) continue;
        const SimulationOptions options = options_of(random());
        if (options.in_issue_order && !hanging_at(plan, options).empty()) continue;
        compared.expect_equal(plan, options, std::to_string(number));
        break;
      }
    }
  }
  compared.record();
  // The others have few micro-batches, or run all of them forward, then all back.
  EXPECT_GT(compared.proved(), compared.all() / 4);
}

/// Four stages of four layers, 16 micro-batches.
Plan four_stages() {
  Plan plan = example("megatron_ddp", 16);
  plan.layout = {.tp = 2, .pp = 4, .dp_shard = 2};
  plan.layout.zero_stage = 1;
  plan.job.global_batch_size = 32;
  return plan;
}

/// A step of 16 micro-batches, one of 17, and the run of the first.
class FourStages : public ::testing::Test {
 protected:
  FourStages() {
    const Plan plan = four_stages();
    prepare(plan, {}, Wanted::times, few_);
    prepare(plan, {}, Wanted::times, more_, 17);
    timeline_ = run_shared(few_.work, {}, &inside_);
  }
  std::optional<std::vector<RepeatedPart>> parts() const {
    return repeated_parts(few_.program, few_.prices, more_.program, more_.prices);
  }

  Simulation few_;
  Simulation more_;
  Timeline timeline_;
  InsideEnds inside_;
};

TEST_F(FourStages, RepeatAMicrobatchAndAreSteady) {
  const std::optional<std::vector<RepeatedPart>> found = parts();
  ASSERT_TRUE(found);
  for (std::size_t s = 0; s < found->size(); ++s) {
    const RepeatedPart& part = (*found)[s];
    EXPECT_EQ(part.length,
              more_.program.stages[s].operations.size() - few_.program.stages[s].operations.size());
    const std::vector<ProgramOp>& operations = few_.program.stages[s].operations;
    for (std::uint32_t i = part.begin; i + part.length < part.end; ++i) {
      EXPECT_EQ(operations[i].cost, operations[i + part.length].cost);
      EXPECT_EQ(operations[i].microbatch + 1, operations[i + part.length].microbatch);
    }
  }
  const std::optional<double> period = steady_period(few_.work, timeline_, inside_, *found);
  ASSERT_TRUE(period);
  const double longer = run_shared(more_.work).length() - timeline_.length();
  EXPECT_NEAR(longer / *period, 1, 1e-9);
}

TEST_F(FourStages, RepeatNothingWhereProgramsDifferBesides) {
  ASSERT_TRUE(parts());
  StageProgram& stage = more_.program.stages[1];
  for (const std::size_t op : {stage.operations.size() / 2, stage.operations.size() - 1}) {
    const ProgramOp kept = stage.operations[op];
    stage.operations[op].cost += 1;
    EXPECT_FALSE(parts()) << op;
    stage.operations[op] = kept;
    stage.operations[op].layer += 1;
    EXPECT_FALSE(parts()) << op;
    stage.operations[op] = kept;
  }
  more_.prices[2].front().seconds *= 1 + 1e-15;
  EXPECT_FALSE(parts());
}

TEST_F(FourStages, RepeatNothingWhereMessagesOvertakeOneAnother) {
  std::vector<ProgramOp>& operations = few_.program.stages[0].operations;
  std::vector<ProgramOp*> sent;
  for (ProgramOp& op : operations) {
    if (op.role == OpRole::send_forward) sent.push_back(&op);
  }
  std::swap(sent[3]->message, sent[4]->message);
  EXPECT_FALSE(parts());
}

// Whatever is a little late in one of the two periods that are compared.
TEST_F(FourStages, AreNotSteadyWhereOneOperationIsLate) {
  const std::vector<RepeatedPart> found = *parts();
  ASSERT_TRUE(steady_period(few_.work, timeline_, inside_, found));
  for (const Actor& actor : few_.work.actors) {
    std::uint32_t refused = 0;
    for (std::size_t i = 0; i < few_.work.program_of(actor).operations.size(); ++i) {
      double& end = timeline_.end[actor.base + i];
      const double kept = end;
      end += 1e-6 * timeline_.length();
      if (!steady_period(few_.work, timeline_, inside_, found)) ++refused;
      end = kept;
    }
    EXPECT_GE(refused, found[actor.program].length) << actor.program;
  }
}

// Transfers inside passes say nothing of the ends of operations until they hold one up.
TEST_F(FourStages, AreNotSteadyWhereATransferInsideAPassIsLate) {
  const std::vector<RepeatedPart> found = *parts();
  ASSERT_FALSE(inside_.front().empty());
  for (std::vector<double>& ends : inside_) {
    std::size_t refused = 0;
    for (double& end : ends) {
      const double kept = end;
      end += 1e-9 * timeline_.length();
      if (!steady_period(few_.work, timeline_, inside_, found)) ++refused;
      end = kept;
    }
    EXPECT_GE(refused, ends.size() / 16);
  }
}

// Kernels so short that the host sets the pace.
TEST(SteadyStep, IsTheWholeStepWhereTheHostIsLate) {
  for (const std::int32_t pp : {1, 4}) {
    Plan plan = four_stages();
    plan.model = test::llama(16, 256, 512, 4, 4, 512);
    plan.layout = {.pp = pp, .dp_shard = 4};
    plan.layout.zero_stage = 1;
    plan.job.sequence_length = 128;
    plan.job.global_batch_size = 4 * 96;
    SimulationOptions alone;
    alone.host = false;
    const double whole = whole_length(plan, {});
    ASSERT_GT(whole, 1.2 * whole_length(plan, alone));
    const std::optional<SteadyStep> steady = steady_step(plan, {});
    ASSERT_TRUE(steady) << pp;
    EXPECT_LT(steady->microbatches, 60);
    EXPECT_NEAR(steady->seconds / whole, 1, 1e-9);
  }
}

TEST(SteadyStep, IsNothingOfAFewMicrobatches) {
  EXPECT_FALSE(steady_step(four_stages(), {}));
  Plan plan = four_stages();
  plan.job.global_batch_size = 256;
  EXPECT_TRUE(steady_step(plan, {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(steady_step(plan, {}, stop.get_token()));
}

}  // namespace
}  // namespace shardwise::sim
