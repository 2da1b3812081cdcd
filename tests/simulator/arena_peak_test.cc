#include <gtest/gtest.h>

#include "planner/cost/memory.h"
#include "planner/cost/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/names.h"
#include "simulator/simulate.h"
#include "tests/planner/lowering/pipelines.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

// What the clock makes of an arena: operations of several streams at once, with links that are
// shared and without.
TEST(SimulatedArena, HasTheLedgersPeakToTheByteOnEveryStage) {
  std::uint32_t seed = 2211;
  for (const test::Way& way : test::kWays) {
    Plan plan;
    plan.model = test::llama(19, 1024, 2816, 8, 4, 32000);
    plan.engine = shardwise_engine();
    plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
    plan.job.sequence_length = 1024;
    plan.job.global_batch_size = 96;
    const int drawn = test::draw_pipelines(plan, way, 6, ++seed, [&] {
      SimulationOptions options;
      options.contention = seed % 2 == 0;
      const Simulation made = simulate(plan, options);
      const LayoutMemory memory =
          layout_memory(plan.model, plan.job, plan.engine,
                        runtime_memory(plan.engine, plan.cluster.gpu), plan.layout);
      for (std::size_t s = 0; s < memory.stages.size(); ++s) {
        EXPECT_EQ(made.memory[s].peak_allocated, memory.stages[s].peak_allocated().value())
            << "stage " << s << " " << test::text_of(plan.layout);
        for (const MemoryMoment& moment : made.memory[s].moments) ASSERT_GE(moment.allocated, 0);
      }
    });
    EXPECT_EQ(drawn, 6) << name_of(way.schedule) << " " << way.vpp;
  }
}

}  // namespace
}  // namespace shardwise::sim
