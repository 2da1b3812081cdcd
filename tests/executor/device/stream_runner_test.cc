#include "executor/device/cpu/stream_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/executor/device/hand_made.h"

namespace shardwise::exec::test {
namespace {

TEST(StreamRunner, BeginsAnOperationWhenAllBeforeItAreOver) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const StageProgram program = random_program(random, 40, 4);
    AbortSignal abort;
    StreamRunner runner({&program}, 0, abort);
    std::vector<std::atomic<int>> runs(program.operations.size());
    std::atomic<int> early = 0;
    OpKernels kernels;
    int round = 0;
    for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
      kernels.emplace_back([&, op](DeviceStream&) {
        for (const std::uint32_t b : before(program, op)) {
          if (runs[b].load(std::memory_order_relaxed) != round) ++early;
        }
        runs[op].fetch_add(1, std::memory_order_relaxed);
      });
    }
    for (round = 1; round <= 3; ++round) runner.run(0, kernels, Spans::recorded);
    EXPECT_EQ(early, 0) << "seed " << seed;
    for (const std::atomic<int>& each : runs) EXPECT_EQ(each, 3) << "seed " << seed;
  }
}

TEST(StreamRunner, RunsStreamsBesideEachOther) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {}}});
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  std::atomic<int> there = 0;
  // Each ends when both have begun: one thread alone would never return.
  const OpKernels kernels(2, [&](DeviceStream&) {
    ++there;
    there.notify_all();
    for (int seen = there; seen < 2; seen = there) there.wait(seen);
  });
  runner.run(0, kernels, Spans::recorded);
  EXPECT_EQ(there, 2);
}

TEST(StreamRunner, TellsKernelsOfOneStreamTheSame) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  std::vector<const DeviceStream*> told(3);
  OpKernels kernels;
  for (std::size_t op = 0; op < 3; ++op) {
    kernels.emplace_back([&told, op](DeviceStream& stream) { told[op] = &stream; });
  }
  runner.run(0, kernels, Spans::recorded);
  EXPECT_EQ(told[0], told[2]);
  EXPECT_NE(told[0], told[1]);
}

TEST(StreamRunner, SaysWhenEachOperationBeganWasReadyAndEnded) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  std::vector<std::int64_t> prepared(3);
  std::vector<std::int64_t> ran(3);
  OpKernels kernels(3);
  for (std::size_t op = 0; op < 3; ++op) {
    if (op == 1) kernels[op].prepare = [&, op](DeviceStream&) { prepared[op] = now_ns(); };
    kernels[op].run = [&, op](DeviceStream&) { ran[op] = now_ns(); };
  }
  const std::int64_t begin = now_ns();
  runner.run(0, kernels, Spans::recorded);
  const std::int64_t end = now_ns();
  const auto spans = runner.spans();
  ASSERT_EQ(spans.size(), 3U);
  std::int64_t before = begin;
  for (std::size_t op = 0; op < 3; ++op) {
    EXPECT_LE(before, spans[op].begin) << op;
    EXPECT_LE(prepared[op], spans[op].ready) << op;
    EXPECT_TRUE(op == 1 || spans[op].ready == spans[op].begin) << op;
    EXPECT_LE(spans[op].ready, ran[op]) << op;
    EXPECT_LE(ran[op], spans[op].end) << op;
    before = spans[op].end;
  }
  EXPECT_LE(before, end);
}

TEST(StreamRunner, NamesTheOperationWhoseKernelFailsAndEndsTheRun) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  StreamRunner runner({&program}, 3, abort);
  bool went_on = false;
  OpKernels kernels(3);
  kernels[0].run = [](DeviceStream&) {};
  kernels[1].run = [](DeviceStream&) { throw std::runtime_error("no more"); };
  kernels[2].run = [&](DeviceStream&) { went_on = true; };
  EXPECT_THROW(runner.run(0, kernels, Spans::recorded), Aborted);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(abort.message(), "rank 3, fwd.layer1: no more");
  EXPECT_THROW(runner.run(0, kernels, Spans::recorded), Aborted);
}

TEST(StreamRunner, StopsWaitingWhenTheRunFailsElsewhere) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {}}, {kCompute, {1}}});
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  OpKernels kernels(3);
  kernels[0].run = [](DeviceStream&) {};
  kernels[1].run = [&](DeviceStream&) {
    abort.raise("rank 1 is gone");
    abort.check();  // as a collective does that waits
  };
  kernels[2].run = [](DeviceStream&) { FAIL() << "begins without what it waits for"; };
  EXPECT_THROW(runner.run(0, kernels, Spans::recorded), Aborted);
  EXPECT_EQ(abort.message(), "rank 1 is gone");
}

TEST(StreamRunner, RunsAnyOfItsPrograms) {
  const StageProgram one = made_program({{kCompute, {}}});
  const StageProgram two = made_program({{kCompute, {}}, {kGather, {0}}});
  AbortSignal abort;
  StreamRunner runner({&one, &two}, 0, abort);
  int ran = 0;
  const auto count = [&](DeviceStream&) { ++ran; };
  const OpKernels of_one(1, count);
  const OpKernels of_two(2, count);
  runner.run(1, of_two, Spans::recorded);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(runner.spans().size(), 2U);
  runner.run(0, of_one, Spans::recorded);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(runner.spans().size(), 1U);
}

}  // namespace
}  // namespace shardwise::exec::test
