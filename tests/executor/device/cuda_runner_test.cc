#include "executor/device/cuda/cuda_runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>

#include "executor/device/cuda/cuda_device.h"
#include "tests/executor/device/counters.h"
#include "tests/executor/device/hand_made.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fibers.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Runs a program `kProgramRuns` times. \returns what went wrong, empty for nothing
std::string run_counters(const StageProgram& program, std::uint64_t seed, bool graphs,
                         Spans spans = Spans::none) {
  fake_cuda::reset(seed);
  std::string wrong;
  {
    CudaDevice device(0, 0);
    const auto stream = device.stream(StreamPriority::normal);
    Counters counters(device, program);
    AbortSignal abort;
    CudaRunner runner({&program}, 0, abort, graphs ? "" : "not asked for");
    for (std::int32_t run = 1; run <= kProgramRuns; ++run) {
      counters.set(device, *stream, run);
      runner.run(0, counters.kernels(), spans);
      if (counters.wrong() > 0) wrong += "an operation began early; ";
      if (!counters.all_at(device, *stream, run)) wrong += "an operation did not run; ";
    }
    if (spans == Spans::none && runner.has_graph(0) != graphs) wrong += "another graph; ";
  }
  for (const std::string& line : fake_cuda::complaints()) wrong += line + "; ";
  return wrong + fake_cuda::left_over();
}

TEST(CudaRunner, KeepsTheProgramsOrderWhateverTheStreamsDo) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const StageProgram program = random_program(random, 40, 5);
    EXPECT_EQ(run_counters(program, seed, false), "") << "seed " << seed;
    EXPECT_EQ(run_counters(program, seed, false, Spans::recorded), "") << "seed " << seed;
  }
}

TEST(CudaRunner, KeepsTheProgramsOrderInAGraph) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const StageProgram program = random_program(random, 40, 5);
    EXPECT_EQ(run_counters(program, seed, true), "") << "seed " << seed;
  }
}

/// Of a program whose first gather, pass and second gather wait for one another, how many of twenty
/// orders show that operation `op` does not.
int shown_without_waits_of(std::size_t op, bool graph) {
  const StageProgram whole = made_program({{kGather, {}}, {kCompute, {0}}, {kGather, {1}}});
  StageProgram less = whole;
  less.operations[op].waits = {};
  int shown = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    fake_cuda::reset(seed);
    CudaDevice device(0, 0);
    const auto stream = device.stream(StreamPriority::normal);
    Counters counters(device, whole);
    AbortSignal abort;
    CudaRunner runner({&less}, 0, abort, graph ? "" : "not asked for");
    for (std::int32_t run = 1; run <= kProgramRuns; ++run) {
      counters.set(device, *stream, run);
      runner.run(0, counters.kernels(), Spans::none);
    }
    shown += counters.wrong() > 0 ? 1 : 0;
  }
  return shown;
}

// The second gather reuses what the pass reads: either wait, left out, shows.
TEST(CudaRunner, WouldShowAWaitLeftOut) {
  for (std::size_t op = 1; op < 3; ++op) {
    for (const bool graph : {false, true}) {
      const std::string where = fmt::format("op {}, graph {}", op, graph);
      if (host_cuda::races_are_watched()) {
        EXPECT_EXIT(std::exit(shown_without_waits_of(op, graph) > 0 ? 0 : 1),
                    testing::ExitedWithCode(66), "data race")
            << where;
      } else {
        EXPECT_GT(shown_without_waits_of(op, graph), 10) << where;
      }
    }
  }
}

TEST(CudaRunner, NotesWhenEachOperationRanOnlyWhereAsked) {
  fake_cuda::reset(1);
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  CudaDevice device(0, 0);
  Counters counters(device, program);
  AbortSignal abort;
  CudaRunner runner({&program}, 0, abort, "");
  const std::int64_t begin = now_ns();
  runner.run(0, counters.kernels(), Spans::recorded);
  const auto spans = runner.spans();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_GE(spans[0].begin, begin);
  for (std::size_t op = 0; op < 3; ++op) {
    EXPECT_LT(spans[op].begin, spans[op].ready) << op;  // the fake's clock ticks at each event
    EXPECT_LT(spans[op].ready, spans[op].end) << op;
    EXPECT_TRUE(op == 0 || spans[op - 1].end < spans[op].begin) << op;
  }
  runner.run(0, counters.kernels(), Spans::none);
  EXPECT_THAT(runner.spans(), IsEmpty());
}

TEST(CudaRunner, IssuesAStepWithoutWaitingForTheDevice) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  fake_cuda::reset(1);
  const CudaDevice device(0, 0);
  AbortSignal abort;
  CudaRunner runner({&program}, 0, abort, "not asked for");
  std::vector<std::int64_t> worked;
  OpKernels kernels;
  for (int op = 0; op < 3; ++op) {
    kernels.emplace_back([&](DeviceStream&) { worked.push_back(fake_cuda::worked()); });
  }
  runner.run(0, kernels, Spans::none);
  EXPECT_THAT(worked, Each(worked.front()));
}

// A kernel given the run's number by value has the captured run's for ever: the counters find it.
TEST(CudaRunner, WouldShowAHostsValueCapturedInAGraph) {
  fake_cuda::reset(3);
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}});
  CudaDevice device(0, 0);
  const auto stream = device.stream(StreamPriority::normal);
  Counters counters(device, program);
  std::int32_t now = 0;
  std::int32_t last = 0;
  counters.kernels()[1].run = [&](DeviceStream& own) {
    fake_cuda::enqueue(cuda_stream(own).handle(), "stale", [&last, value = now] { last = value; });
  };
  AbortSignal abort;
  CudaRunner runner({&program}, 0, abort, "");
  for (now = 1; now <= kProgramRuns; ++now) {
    runner.run(0, counters.kernels(), Spans::none);
    EXPECT_EQ(last, std::min(now, CudaRunner::kGraphAfter + 1));
  }
}

/// What a run says whose second kernel does what it may not.
std::string message_of(const std::function<void(DeviceStream&)>& kernel, bool graphs) {
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  {
    CudaDevice device(0, 2);
    Counters counters(device, program);
    counters.kernels()[1].run = kernel;
    CudaRunner runner({&program}, 2, abort, graphs ? "" : "not asked for");
    try {
      for (int run = 0; run < kProgramRuns; ++run) runner.run(0, counters.kernels(), Spans::none);
    } catch (const Aborted&) {
      EXPECT_TRUE(abort.raised());
    }
  }
  return abort.message();
}

TEST(CudaRunner, NamesAHostWaitInACapture) {
  fake_cuda::reset(4);
  EXPECT_THAT(message_of([](DeviceStream& stream) { cuda_stream(stream).synchronize(); }, true),
              AllOf(HasSubstr("rank 2, fwd.layer1: cudaStreamSynchronize: "), HasSubstr("900)")));
  EXPECT_THAT(fake_cuda::complaints(),
              ElementsAre("cudaStreamSynchronize while a stream is captured"));
  EXPECT_EQ(fake_cuda::left_over(), "");
}

TEST(CudaRunner, NamesAnAllocationInACapture) {
  fake_cuda::reset(4);
  const CudaCalls calls(2);
  const auto kernel = [&](DeviceStream&) {
    void* memory = nullptr;
    calls.check(cudaMalloc(&memory, 16), "cudaMalloc");
    cudaFree(memory);
  };
  EXPECT_THAT(message_of(kernel, true), HasSubstr("fwd.layer1: cudaMalloc: "));
  EXPECT_EQ(fake_cuda::left_over(), "");
}

TEST(CudaRunner, NamesAStreamThatIsNotJoined) {
  fake_cuda::reset(4);
  const CudaCalls calls(2);
  CudaStream other(calls, StreamPriority::normal);
  CudaEvent event(calls, false);
  const auto kernel = [&](DeviceStream& stream) {
    event.record(cuda_stream(stream));
    event.hold(other);
    fake_cuda::enqueue(other.handle(), "lost", [] {});
  };
  EXPECT_THAT(message_of(kernel, true), HasSubstr("the step: cudaStreamEndCapture: "));
  EXPECT_THAT(fake_cuda::complaints(), ElementsAre(HasSubstr("is not joined to the capture's")));
}

TEST(CudaRunner, NamesAKernelThatNeverEnds) {
  fake_cuda::reset(4);
  const auto kernel = [](DeviceStream& stream) {
    fake_cuda::enqueue(cuda_stream(stream).handle(), "all_gather", [](std::int64_t) {
      return std::vector<fake_cuda::Work>{{"all_gather", [] { return false; }, "other ranks", {}}};
    });
  };
  EXPECT_THAT(message_of(kernel, false), HasSubstr("rank 2, the step: cudaEventQuery: "));
  EXPECT_THAT(fake_cuda::complaints(),
              testing::Contains(HasSubstr("all_gather waits for other ranks")));
  EXPECT_EQ(fake_cuda::left_over(), "");
}

TEST(CudaRunner, StopsWaitingWhenTheRunFailsElsewhere) {
  fake_cuda::reset(5);
  const StageProgram program = made_program({{kCompute, {}}});
  const CudaDevice device(0, 0);
  AbortSignal abort;
  OpKernels kernels(1);
  kernels[0].run = [&](DeviceStream&) { abort.raise("rank 1 is gone"); };
  CudaRunner runner({&program}, 0, abort, "not asked for");
  fake_cuda::set_hosts(2);  // the other may still issue: nothing hangs yet
  const auto issue = [&](DeviceStream& stream) {
    fake_cuda::enqueue(cuda_stream(stream).handle(), "all_gather", [&](std::int64_t) {
      return std::vector<fake_cuda::Work>{
          {"all_gather", [&] { return abort.raised(); }, "other ranks", {}}};
    });
    abort.raise("rank 1 is gone");
  };
  kernels[0].run = issue;
  EXPECT_THROW(runner.run(0, kernels, Spans::none), Aborted);
  EXPECT_EQ(abort.message(), "rank 1 is gone");
}

// NCCL lists what a graph holds when it is captured: the step says how old a launch is.
// A step may take longer than a rank may stand still: what counts is when something last began.
TEST(CudaRunner, StandsStillSinceTheOperationItIssuedLast) {
  fake_cuda::reset(6);
  const StageProgram program = made_program({{kCompute, {}}, {kCompute, {}}, {kCompute, {}}});
  AbortSignal abort;
  std::vector<std::int64_t> since;
  OpKernels kernels(3);
  for (OpKernel& each : kernels) {
    each.run = [&](DeviceStream&) { since.push_back(abort.stillest().second); };
  }
  CudaRunner runner({&program}, 0, abort, "");
  runner.run(0, kernels, Spans::none);
  ASSERT_EQ(since.size(), 3U);
  EXPECT_LT(since[0], since[1]);
  EXPECT_LT(since[1], since[2]);
}

TEST(CudaRunner, SaysWhichStepRunsAsAGraph) {
  fake_cuda::reset(5);
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}});
  AbortSignal abort;
  std::string said;
  OpKernels kernels(2);
  kernels[0].run = [](DeviceStream&) {};
  kernels[1].run = [&](DeviceStream& stream) {
    fake_cuda::enqueue(cuda_stream(stream).handle(), "all_gather", [&](std::int64_t) {
      return std::vector<fake_cuda::Work>{{"all_gather", {}, {}, [&] { said = abort.describe(); }}};
    });
  };
  CudaRunner runner({&program}, 2, abort, "");
  for (int step = 1; step <= CudaRunner::kGraphAfter + 1; ++step) {
    runner.run(0, kernels, Spans::none);
    const std::string how = step > CudaRunner::kGraphAfter ? " as a graph" : "";
    EXPECT_THAT(said, HasSubstr("rank 2\n  the GPU runs step " + std::to_string(step) +
                                " of this process, 2 operations" + how + ", for 0.0 s"));
  }
}

/// Runs two ranks, a thread each, whose gather begins when both have come to it. \returns what the
/// run says, empty for nothing
std::string message_of_two_ranks(std::uint64_t seed) {
  fake_cuda::reset(seed);
  fake_cuda::set_hosts(2);
  const StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}, {kCompute, {1}}});
  AbortSignal abort;
  std::atomic<int> arrived = 0;
  const auto gather = [&](DeviceStream& stream) {
    fake_cuda::enqueue(cuda_stream(stream).handle(), "all_gather", [&](std::int64_t) {
      return std::vector<fake_cuda::Work>{
          {"arrives", {}, {}, [&] { ++arrived; }},
          {"all_gather", [&] { return arrived == 2; }, "others", {}}};
    });
  };
  const auto rank_main = [&](int rank) {
    CudaDevice device(0, rank);
    Counters counters(device, program);
    counters.kernels()[1].run = gather;
    CudaRunner runner({&program}, rank, abort, "not asked for");
    try {
      runner.run(0, counters.kernels(), Spans::none);
    } catch (const Aborted&) {
      EXPECT_TRUE(abort.raised());
    }
  };
  std::thread other([&] { rank_main(1); });
  rank_main(0);
  other.join();
  return abort.message();
}

TEST(CudaRunner, LetsRanksOfTwoThreadsMeet) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(message_of_two_ranks(seed), "") << "seed " << seed;
    EXPECT_THAT(fake_cuda::complaints(), IsEmpty()) << "seed " << seed;
    EXPECT_EQ(fake_cuda::left_over(), "") << "seed " << seed;
  }
}

TEST(CudaRunner, RunsWithoutAGraphWhatNeedsTheHostWithinAStep) {
  StageProgram program = made_program({{kCompute, {}}, {kGather, {0}}});
  EXPECT_EQ(capture_problem(program), "");
  program.operations[1].routed = true;
  EXPECT_EQ(capture_problem(program),
            name_of(program, program.operations[1]) + " depends on how tokens are routed");
  program.operations[1].routed = false;
  program.costs.push_back({});
  program.costs[1].host_bytes = 1;
  program.operations[1].cost = 1;
  EXPECT_EQ(capture_problem(program), "fwd.layer1 needs the host within the step");
  fake_cuda::reset(6);
  CudaDevice device(0, 0);
  Counters counters(device, program);
  AbortSignal abort;
  CudaRunner runner({&program}, 0, abort, "");
  for (int run = 0; run < kProgramRuns; ++run) runner.run(0, counters.kernels(), Spans::none);
  EXPECT_FALSE(runner.has_graph(0));
}

}  // namespace
}  // namespace shardwise::exec::test
