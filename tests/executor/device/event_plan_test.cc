#include "executor/device/cuda/event_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/executor/device/hand_made.h"

namespace shardwise::exec::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Which operations are over when another begins: `edges[op]` are begun after.
using Edges = std::vector<std::vector<std::uint32_t>>;

/// after[op][b]: b is over before op begins, by any road.
std::vector<std::vector<bool>> closure(const Edges& edges) {
  std::vector<std::vector<bool>> after(edges.size(), std::vector<bool>(edges.size()));
  for (std::size_t op = 0; op < edges.size(); ++op) {
    for (const std::uint32_t b : edges[op]) {
      after[op][b] = true;
      for (std::size_t i = 0; i < edges.size(); ++i) after[op][i] = after[op][i] || after[b][i];
    }
  }
  return after;
}

/// With an operation in the end for the step's end on the compute stream.
Edges edges_of(const StageProgram& program) {
  Edges edges;
  std::vector<std::uint32_t> all;
  for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
    edges.push_back(before(program, op));
    all.push_back(op);
  }
  edges.push_back(all);
  return edges;
}

/// Those that streams keep by themselves, without events.
Edges without_waits(const StageProgram& program) {
  Edges edges;
  std::vector<std::uint32_t> end;
  for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
    std::vector<std::uint32_t> own;
    for (std::uint32_t i = op; i-- > 0 && own.empty();) {
      if (program.operations[i].stream == program.operations[op].stream) own = {i};
    }
    edges.push_back(own);
    if (program.operations[op].stream == Stream::compute) end = {op};
  }
  edges.push_back(end);
  return edges;
}

Edges with(Edges edges, const EventPlan& plan) {
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    edges[op].insert(edges[op].end(), plan.ops[op].waits.begin(), plan.ops[op].waits.end());
  }
  edges.back().insert(edges.back().end(), plan.joins.begin(), plan.joins.end());
  return edges;
}

TEST(EventPlan, KeepsTheProgramsOrderWithNoWaitToSpare) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const StageProgram program = random_program(random, 24, 1 + static_cast<int>(seed % 5));
    const EventPlan plan = event_plan(program);
    const auto wanted = closure(edges_of(program));
    const Edges streams = without_waits(program);
    ASSERT_EQ(closure(with(streams, plan)), wanted) << "seed " << seed;
    for (std::size_t op = 0; op <= plan.ops.size(); ++op) {
      const std::size_t count =
          op < plan.ops.size() ? plan.ops[op].waits.size() : plan.joins.size();
      for (std::size_t i = 0; i < count; ++i) {
        EventPlan less = plan;
        auto& waits = op < plan.ops.size() ? less.ops[op].waits : less.joins;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(closure(with(streams, less)), wanted) << "seed " << seed << ", op " << op;
      }
    }
  }
}

TEST(EventPlan, RecordsWhereAnotherStreamWaitsAndNowhereElse) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const EventPlan plan = event_plan(random_program(random, 30, 4));
    std::vector<bool> awaited(plan.ops.size());
    for (const EventPlan::Op& op : plan.ops) {
      for (const std::uint32_t wait : op.waits) awaited[wait] = true;
    }
    for (const std::uint32_t join : plan.joins) awaited[join] = true;
    for (std::size_t op = 0; op < plan.ops.size(); ++op) {
      EXPECT_EQ(plan.ops[op].records, awaited[op]) << "seed " << seed << ", op " << op;
    }
  }
}

TEST(EventPlan, NeedsNoEventOnOneStream) {
  const EventPlan plan = event_plan(made_program({{Stream::compute, {}}, {Stream::compute, {0}}}));
  EXPECT_THAT(plan.ops[1].waits, IsEmpty());
  EXPECT_THAT(plan.joins, IsEmpty());
  EXPECT_FALSE(plan.ops[0].records);
}

// A gather that waits for nothing begins with the step; one that waits is behind that.
TEST(EventPlan, BeginsStreamsWithTheStep) {
  const EventPlan plan = event_plan(made_program({{Stream::all_gather, {}},
                                                  {Stream::compute, {0}},
                                                  {Stream::reduce_scatter, {1}},
                                                  {Stream::all_gather, {}}}));
  EXPECT_TRUE(plan.ops[0].after_begin);
  EXPECT_FALSE(plan.ops[1].after_begin);
  EXPECT_FALSE(plan.ops[2].after_begin);
  EXPECT_FALSE(plan.ops[3].after_begin);
  EXPECT_THAT(plan.joins, ElementsAre(3U, 2U));
}

}  // namespace
}  // namespace shardwise::exec::test
