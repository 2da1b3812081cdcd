#include "executor/engine/require_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "planner/lowering/stage/stage_builder.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

/// A stage that issues two collectives of all ranks, one behind the other.
void write(StageProgram& stage, Stream first, Stream second) {
  StageBuilder builder(stage);
  CollectiveWork work;
  work.group = GroupKind::world;
  work.bytes = 64;
  ProgramOp op;
  op.role = OpRole::reduce;
  op.cost = builder.collective_cost(work);
  op.stream = first;
  const OpId before = builder.add(op);
  op.stream = second;
  builder.add(op, {before});
}

// The first collective of each stage waits for the second of the other.
TEST(RequireEnd, EndsARunWhoseStepWouldNot) {
  Plan plan;
  plan.layout.pp = 2;
  StepProgram program;
  program.stages.resize(2);
  write(program.stages[0], Stream::all_gather, Stream::reduce_scatter);
  write(program.stages[1], Stream::all_gather, Stream::reduce_scatter);
  require_end(plan, std::vector{program});
  program.stages[1] = {};
  write(program.stages[1], Stream::reduce_scatter, Stream::all_gather);
  try {
    require_end(plan, std::vector{program});
    FAIL();
  } catch (const IoError& said) {
    EXPECT_THAT(said.what(), testing::StartsWith("the step would never end: each waits for"));
  }
}

}  // namespace
}  // namespace shardwise::exec
