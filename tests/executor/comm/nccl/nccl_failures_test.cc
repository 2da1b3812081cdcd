// Each call of NCCL fails once, and operations do not end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/comm/nccl/nccl_world.h"
#include "executor/device/cuda/cuda_graph.h"
#include "tests/executor/comm/nccl/every_call.h"
#include "tests/executor/comm/nccl/fake_job.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fake_nccl.h"

namespace shardwise::exec::test {
namespace {

using testing::HasSubstr;

/// What two ranks exchange. It outlives them: a rank that leaves may be read by the other still.
class Exchanged {
 public:
  void again(ControlGroup& everyone) {
    const auto rank = static_cast<std::size_t>(everyone.rank());
    everyone.all_gather_bytes(std::span(&own_[rank], 1), all_[rank]);
  }

 private:
  std::array<std::byte, 2> own_{};
  std::array<std::array<std::byte, 2>, 2> all_{};
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A line with the call, the communicator and NCCL's word for it, and nothing left.
TEST(NcclWorld, SaysWhichCallFailedAndLeavesNothing) {
  struct Failing {
    const char* call;
    ncclResult_t error;
    const char* said;
  };
  for (const Failing& each : {Failing{"ncclGetUniqueId", ncclSystemError,
                                      "ncclGetUniqueId of rank 0: unhandled system error"},
                              {"ncclCommInitRankConfig", ncclInternalError,
                               "ncclCommInitRankConfig of the communicator of all 2 ranks: "
                               "internal error"},
                              {"ncclCommSplit", ncclInvalidArgument,
                               "ncclCommSplit of the communicator of all 2 ranks: invalid "
                               "argument"},
                              {"ncclAllGather", ncclUnhandledCudaError,
                               "ncclAllGather of reduce_scatter among ranks 0, 1: unhandled cuda "
                               "error"},
                              {"ncclReduceScatter", ncclInvalidUsage,
                               "ncclReduceScatter of reduce_scatter among ranks 0, 1: invalid "
                               "usage"},
                              {"ncclAllReduce", ncclRemoteError,
                               "ncclAllReduce of reduce_scatter among ranks 0, 1: remote process "
                               "exited"},
                              {"ncclSend", ncclSystemError,
                               "ncclSend and ncclRecv of reduce_scatter among ranks 0, 1: "
                               "unhandled system error"},
                              {"ncclRecv", ncclSystemError,
                               "ncclSend and ncclRecv of reduce_scatter among ranks 0, 1: "
                               "unhandled system error"},
                              {"ncclGroupStart", ncclInternalError,
                               "ncclSend and ncclRecv of reduce_scatter among ranks 0, 1: "
                               "internal error"},
                              {"ncclGroupEnd", ncclInternalError,
                               "ncclSend and ncclRecv of reduce_scatter among ranks 0, 1: "
                               "internal error"}}) {
    std::vector<std::unique_ptr<Step>> steps(2);
    const std::string why = run_fake(
        {},
        [&](NcclWorld& world, CudaStream& stream) {
          const auto rank = static_cast<std::size_t>(world.rank());
          steps[rank] = std::make_unique<Step>(world.rank(), 2);
          steps[rank]->issue(*world.communicator({0, 1}, Stream::reduce_scatter), stream);
        },
        [&] { fake_cuda::fail(each.call, 0, static_cast<cudaError_t>(each.error)); });
    EXPECT_THAT(first_line(why), testing::MatchesRegex(std::string("rank [01]: ") + each.said))
        << each.call;
    EXPECT_EQ(fake_nccl::left_over(), 0) << each.call;
  }
}

// An error of a device or of another rank is found by polling, as no call returns it.
TEST(NcclWorld, EndsTheRunWithAnErrorThatHappensLaterAndTheLastOperations) {
  std::vector<std::vector<float>> values(2, std::vector<float>(16));
  Exchanged exchanged;
  const std::string why = run_fake({}, [&](NcclWorld& world, CudaStream& stream) {
    const auto group = world.communicator({0, 1}, Stream::reduce_scatter);
    group->all_reduce(values[static_cast<std::size_t>(world.rank())], stream);
    stream.synchronize();
    const auto everyone = world.control_group({0, 1}, Control::results);
    all_gather_texts(*everyone, "");
    if (world.rank() == 0) fake_nccl::break_later("reduce_scatter", ncclRemoteError);
    for (;;) exchanged.again(*everyone);  // until the run has failed
  });
  EXPECT_THAT(why, testing::ContainsRegex(
                       "^rank [01]: remote process exited .after reduce_scatter among ranks 0, 1: "
                       "ncclAllReduce of 16 elements .number 0.."));
  for (const char* rank : {"\nrank 0", "\nrank 1"}) {
    EXPECT_THAT(why, HasSubstr(rank + std::string("\n  NCCL 2.28.9"))) << "what all ranks issued";
  }
  EXPECT_EQ(fake_nccl::left_over(), 0);
}

// Rank 1 never issues what rank 0 waits for on the device, and its host goes on.
TEST(NcclWorld, EndsTheRunWhenAnOperationDoesNotEndAndSaysWhatAllRanksIssued) {
  std::vector<std::vector<float>> values(2, std::vector<float>(16));
  Exchanged exchanged;
  const std::string why = run_fake({.timeout_s = 0.2}, [&](NcclWorld& world, CudaStream& stream) {
    const auto group = world.communicator({0, 1}, Stream::reduce_scatter);
    const TensorView own(values[static_cast<std::size_t>(world.rank())]);
    group->all_reduce(own, stream);
    if (world.rank() == 0) group->all_reduce(own.part(0, 8), stream);
    const auto everyone = world.control_group({0, 1}, Control::results);
    for (;;) {
      CudaEvent now(CudaCalls(world.rank()), false);
      now.record(stream);
      static_cast<void>(now.over());  // lets the device work
      exchanged.again(*everyone);     // until the run has failed
    }
  });
  EXPECT_THAT(why, testing::ContainsRegex("^rank 0: ncclAllReduce of 8 elements .number 1. has not "
                                          "ended for 0.[2-9] s .after reduce_scatter among ranks"));
  EXPECT_THAT(why, HasSubstr("ncclAllReduce of 8 elements (number 1), ncclAllReduce of 16"));
  EXPECT_THAT(why, testing::ContainsRegex("rank 1\n  NCCL [^\n]*\n *reduce_scatter among ranks 0, "
                                          "1: ncclAllReduce of 16 elements .number 0.\n?"));
  EXPECT_EQ(fake_nccl::left_over(), 0);
  // The thread that looks for it has the rank's GPU.
  EXPECT_THAT(fake_cuda::complaints(), testing::Not(testing::Contains(HasSubstr("has chosen"))));
}

// NCCL writes the child that could not be made once the parent ends: it is not lost.
TEST(NcclWorld, EndsASplitThatAnotherRankDoesNotJoin) {
  const std::string why = run_fake({.timeout_s = 0.2}, [](NcclWorld& world, CudaStream&) {
    if (world.rank() == 0) world.communicator({0, 1}, Stream::all_gather);
    const auto everyone = world.control_group({0, 1}, Control::results);
    for (;;) all_gather_texts(*everyone, "");
  });
  EXPECT_EQ(first_line(why),
            "rank 0 waited 0.2 s in ncclCommSplit of the communicator of all 2 ranks");
  EXPECT_EQ(fake_nccl::left_over(), 0);
}

// Each rank has a graph that holds two communicators, and rank 0's has begun: it waits in the first
// for rank 1, which fails, and would wait in the second.
TEST(NcclWorld, AbortsAllCommunicatorsThatAGraphHoldsAtOnce) {
  std::vector<std::vector<float>> values(2, std::vector<float>(16));
  const std::string why = run_fake({}, [&](NcclWorld& world, CudaStream& stream) {
    const auto one = world.communicator({0, 1}, Stream::all_gather);
    const auto other = world.communicator({0, 1}, Stream::reduce_scatter);
    const TensorView own(values[static_cast<std::size_t>(world.rank())]);
    const CudaGraph step(CudaCalls(world.rank()), stream, [&] {
      one->all_reduce(own, stream);
      other->all_reduce(own, stream);
    });
    if (world.rank() == 0) step.launch(stream);
    const auto everyone = world.control_group({0, 1}, Control::results);
    all_gather_texts(*everyone, "");
    if (world.rank() == 1) throw std::runtime_error("it breaks");
    for (;;) all_gather_texts(*everyone, "");
  });
  EXPECT_EQ(why, "rank 1: it breaks");
  EXPECT_THAT(fake_cuda::complaints(), testing::IsEmpty());
  EXPECT_EQ(fake_nccl::left_over(), 0);
}

// A rank that has not heard of the abort yet launches its step once more: nothing waits in it, and
// what the other rank never sent is not read.
TEST(NcclWorld, MovesNothingInAGraphLaunchedAfterTheAbort) {
  std::vector<std::vector<float>> values(2, std::vector<float>(16));
  const std::string why = run_fake({}, [&](NcclWorld& world, CudaStream& stream) {
    const auto group = world.communicator({0, 1}, Stream::all_gather);
    const TensorView own(values[static_cast<std::size_t>(world.rank())]);
    const CudaGraph step(CudaCalls(world.rank()), stream, [&] { group->all_reduce(own, stream); });
    const auto everyone = world.control_group({0, 1}, Control::results);
    all_gather_texts(*everyone, "");
    if (world.rank() == 1) throw std::runtime_error("it breaks");
    try {
      for (;;) all_gather_texts(*everyone, "");
    } catch (const Aborted&) {
      step.launch(stream);
      stream.synchronize();  // the abort ends it
      step.launch(stream);
      stream.synchronize();
      throw;
    }
  });
  EXPECT_EQ(why, "rank 1: it breaks");
  EXPECT_EQ(values[0], std::vector<float>(16));
  EXPECT_EQ(fake_nccl::left_over(), 0);
}

// What fails when the run has its result changes it no more, and keeps no rank waiting.
TEST(NcclWorld, EndsInTimeWhereACallOfItsEndFails) {
  for (const char* call :
       {"ncclCommFinalize", "ncclCommDestroy", "ncclCommDeregister", "ncclCommWindowDeregister"}) {
    NcclPolicy policy;
    policy.register_buffers = std::string(call) == "ncclCommDeregister";
    policy.symmetric_windows = std::string(call) == "ncclCommWindowDeregister";
    std::vector<std::unique_ptr<Step>> steps(2);
    const std::string why = run_fake(
        {.policy = policy},
        [&](NcclWorld& world, CudaStream& stream) {
          const auto rank = static_cast<std::size_t>(world.rank());
          steps[rank] = std::make_unique<Step>(world.rank(), 2);
          const auto group = world.communicator({0, 1}, Stream::reduce_scatter);
          const MappableMemory memory;
          world.register_memory(memory.bytes());
          steps[rank]->issue(*group, stream);
          stream.synchronize();
        },
        [&] { fake_cuda::fail(call, 0, static_cast<cudaError_t>(ncclInternalError)); });
    EXPECT_EQ(why, "") << call;
    EXPECT_EQ(fake_nccl::left_over(), 0) << call;
  }
}

TEST(NcclWorld, SaysThatMemoryCouldNotBeRegistered) {
  for (const bool windows : {false, true}) {
    NcclPolicy policy;
    policy.register_buffers = !windows;
    policy.symmetric_windows = windows;
    const std::string call = windows ? "ncclCommWindowRegister" : "ncclCommRegister";
    EXPECT_THAT(first_line(run_fake(
                    {.policy = policy},
                    [](NcclWorld& world, CudaStream&) {
                      world.communicator({0, 1}, Stream::all_gather);
                      const MappableMemory memory;
                      world.register_memory(memory.bytes());
                    },
                    [&] { fake_cuda::fail(call, 0, static_cast<cudaError_t>(ncclSystemError)); })),
                testing::MatchesRegex("rank [01]: " + call +
                                      " of all_gather among ranks 0, 1: unhandled system error"));
    EXPECT_EQ(fake_nccl::left_over(), 0);
  }
}

// Polling fails while the communicator of all is made, or later, by the thread that watches.
TEST(NcclWorld, SaysThatAnErrorCouldNotBeAskedFor) {
  for (const int nth : {0, 3, 9}) {
    const std::string why = run_fake(
        {},
        [](NcclWorld& world, CudaStream&) {
          world.communicator({0, 1}, Stream::all_gather);
          const auto everyone = world.control_group({0, 1}, Control::results);
          for (;;) all_gather_texts(*everyone, "");
        },
        [&] {
          fake_cuda::fail("ncclCommGetAsyncError", nth,
                          static_cast<cudaError_t>(ncclInternalError));
        });
    EXPECT_THAT(why, HasSubstr("internal error")) << nth;
    EXPECT_EQ(fake_nccl::left_over(), 0) << nth;
  }
}

TEST(NcclWorld, EndsWhereEvenTheAbortFails) {
  std::vector<std::unique_ptr<Step>> steps(2);
  const std::string why = run_fake(
      {},
      [&](NcclWorld& world, CudaStream& stream) {
        const auto rank = static_cast<std::size_t>(world.rank());
        steps[rank] = std::make_unique<Step>(world.rank(), 2);
        steps[rank]->issue(*world.communicator({0, 1}, Stream::reduce_scatter), stream);
      },
      [&] {
        fake_cuda::fail("ncclAllReduce", 0, static_cast<cudaError_t>(ncclSystemError));
        fake_cuda::fail("ncclCommAbort", 0, static_cast<cudaError_t>(ncclInternalError));
      });
  EXPECT_THAT(first_line(why),
              testing::MatchesRegex("rank [01]: ncclAllReduce of reduce_scatter among ranks 0, "
                                    "1: unhandled system error"));
  EXPECT_EQ(fake_nccl::left_over(), 0);
}

}  // namespace
}  // namespace shardwise::exec::test
