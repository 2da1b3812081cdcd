#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "planner/spec/plan/names.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

std::int64_t operations_in_program(const StepProgram& program) {
  std::int64_t operations = 0;
  for (const StageProgram& stage : program.stages) {
    operations += static_cast<std::int64_t>(stage.operations.size());
  }
  return operations;
}

// Counted from few micro-batches are as many as a program of all has (D2).
TEST(CountOperations, CountsThoseOfTheWholeProgram) {
  struct Case {
    const char* engine;
    std::int32_t pp;
    std::int32_t vpp;
    PipelineSchedule schedule;
    std::int8_t zero_stage;
  };
  for (const Case& c : {Case{"megatron_ddp", 1, 1, PipelineSchedule::one_f_one_b, 1},
                        Case{"fsdp2", 1, 1, PipelineSchedule::one_f_one_b, 3},
                        Case{"megatron_fsdp", 4, 2, PipelineSchedule::one_f_one_b, 3},
                        Case{"shardwise", 3, 1, PipelineSchedule::gpipe, 3},
                        Case{"shardwise", 2, 2, PipelineSchedule::looped_bfs, 2},
                        Case{"shardwise", 4, 1, PipelineSchedule::dualpipe, 1},
                        Case{"shardwise", 4, 1, PipelineSchedule::zb_v, 1}}) {
    Layout layout;
    layout.pp = c.pp;
    layout.vpp = c.vpp;
    layout.schedule = c.schedule;
    layout.dp_shard = 2;
    layout.zero_stage = c.zero_stage;
    for (const std::int64_t m : {8, 20, 24, 60}) {
      for (const Granularity granularity : {Granularity::layer, Granularity::kernel}) {
        const Plan plan = small_plan(*find_engine(c.engine), layout, m);
        EXPECT_EQ(count_operations(plan, granularity),
                  operations_in_program(lower(plan, granularity)))
            << c.engine << " " << name_of(c.schedule) << " micro-batches " << m;
      }
    }
  }
}

// Whatever the batch, asking is the work of a few micro-batches; the answer names the flag and the
// largest batch that is simulated.
TEST(TooManyOperations, NamesTheLargestBatch) {
  Layout layout;
  layout.dp_shard = 2;
  Plan plan = small_plan(*find_engine("megatron_ddp"), layout, 4'000'000);
  const Diagnostics problems = too_many_operations(plan);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().path, "--global-batch-size");
  const std::string& hint = problems.front().hint;
  const std::int64_t most = std::stoll(hint.substr(hint.find_first_of("0123456789")));
  plan.job.global_batch_size = most;
  EXPECT_TRUE(too_many_operations(plan).empty());
  EXPECT_LE(count_operations(plan), kMostOperations);
  plan.job.global_batch_size = most + 2;
  EXPECT_FALSE(too_many_operations(plan).empty());
}

}  // namespace
}  // namespace shardwise::test
