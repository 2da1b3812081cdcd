#include <gtest/gtest.h>

#include <array>

#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "simulator/simulate.h"
#include "tests/planner/lowering/sampler.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

using test::Sampler;
using test::text_of;

/// Plans of an engine on 16 GPUs, with layouts drawn from its whole search space.
template <class Visit>
void draw(const std::string& engine, int count, std::uint32_t seed, Visit&& visit) {
  Plan plan;
  plan.model = test::llama(16, 4096, 14336, 32, 8, 32000);
  plan.engine = *find_engine(engine);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  plan.job.sequence_length = 4096;
  plan.job.global_batch_size = 32;
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  Sampler sampler(question, seed);
  for (int tries = 0; tries < 200'000 && count > 0; ++tries) {
    plan.layout = sampler.draw();
    if (!sampler.legal(plan.layout)) continue;
    --count;
    visit(plan);
  }
}

// What no program can beat, whatever it is: the chain of operations that wait for one another, and
// the work of one stream. And a stream runs one operation at a time.
TEST(SimulatedLayouts, AreNoShorterThanTheirChainsAndStreamsAndOverlapNothing) {
  std::uint32_t seed = 20261121;
  for (const std::string& engine : engine_names()) {
    draw(engine, 12, ++seed, [&](const Plan& plan) {
      for (const bool contention : {false, true}) {
        SimulationOptions options;
        options.contention = contention;
        const Simulation made = simulate(plan, options);
        const StepTimeline timeline = made.report.timeline.value_or(StepTimeline{});
        EXPECT_LE(timeline.critical_path.value(), made.timeline.length() * (1 + 1e-9))
            << engine << " " << text_of(plan.layout);
        for (const StageTimeline& stage : timeline.stages) {
          for (const StreamTime& stream : stage.streams) {
            EXPECT_LE(stream.busy.value(), made.timeline.length() * (1 + 1e-9))
                << engine << " " << stream.stream << " " << text_of(plan.layout);
          }
        }
        for (const Actor& actor : made.work.actors) {
          std::array<double, kStreams> until{};
          const StageProgram& stage = made.work.program_of(actor);
          for (std::size_t i = 0; i < stage.operations.size(); ++i) {
            double& free = until[static_cast<std::size_t>(stage.operations[i].stream)];
            ASSERT_GE(made.timeline.start[actor.base + i], free)
                << engine << " " << name_of(stage, stage.operations[i]) << text_of(plan.layout);
            free = made.timeline.end[actor.base + i];
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace shardwise::sim
