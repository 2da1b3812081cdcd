// NCCL's world on the fakes of CUDA and NCCL, whose streams run in random legal orders.
#include "executor/comm/nccl/nccl_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "tests/executor/comm/nccl/every_call.h"
#include "tests/executor/comm/nccl/fake_job.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fake_nccl.h"

namespace shardwise::exec::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NcclWorld, GivesWhatThreadsGiveInAnyOrderOfStreams) {
  for (const int ranks : {2, 3, 4}) {
    std::vector<std::vector<std::vector<float>>> expected(static_cast<std::size_t>(ranks));
    AbortSignal abort;
    run_ranks(ranks, abort, [&](World& world) {
      Step step(world.rank(), ranks);
      DeviceStream stream;
      step.issue(*world.communicator(all_ranks(world), Stream::reduce_scatter), stream);
      expected[static_cast<std::size_t>(world.rank())] = step.results(world.rank());
    });
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<std::unique_ptr<Step>> one(static_cast<std::size_t>(ranks));
      std::vector<std::unique_ptr<Step>> other(static_cast<std::size_t>(ranks));
      const std::string why =
          run_fake({.ranks = ranks, .seed = seed}, [&](NcclWorld& world, CudaStream& stream) {
            const auto rank = static_cast<std::size_t>(world.rank());
            CudaStream beside{CudaCalls(world.rank()), StreamPriority::normal};
            one[rank] = std::make_unique<Step>(world.rank(), ranks);
            other[rank] = std::make_unique<Step>(world.rank(), ranks);
            const auto group = world.communicator(all_ranks(world), Stream::reduce_scatter);
            const auto gathers = world.communicator(all_ranks(world), Stream::all_gather);
            one[rank]->issue(*group, stream);
            other[rank]->issue(*gathers, beside);
            beside.synchronize();
          });
      ASSERT_EQ(why, "");
      EXPECT_THAT(fake_cuda::complaints(), IsEmpty());
      EXPECT_EQ(fake_nccl::left_over(), 0);
      for (std::size_t rank = 0; rank < one.size(); ++rank) {
        EXPECT_EQ(one[rank]->results(static_cast<int>(rank)), expected[rank]) << "seed " << seed;
        EXPECT_EQ(other[rank]->results(static_cast<int>(rank)), expected[rank]) << "seed " << seed;
      }
    }
  }
}

TEST(NcclWorld, PromisesNothingThatOnlyHostBackEndsDo) {
  EXPECT_EQ(run_fake({},
                     [](NcclWorld& world, CudaStream&) {
                       EXPECT_EQ(world.communicator({0, 1}, Stream::all_gather)->traits(),
                                 CommunicatorTraits());
                     }),
            "");
}

// A communicator of one rank takes memory and moves nothing.
TEST(NcclWorld, MakesNoCommunicatorOfOneRank) {
  EXPECT_EQ(run_fake({.ranks = 1}, [](NcclWorld&, CudaStream&) {}), "");
  EXPECT_THAT(fake_nccl::communicators(), IsEmpty());
}

TEST(NcclWorld, SplitsOneCommunicatorForEachPurposeAndGroup) {
  const auto body = [](NcclWorld& world, CudaStream&) {
    const std::int64_t first = std::int64_t{world.rank()} / 2 * 2;
    for (int again = 0; again < 2; ++again) {
      world.communicator({first, first + 1}, Stream::all_gather);
      world.communicator({first, first + 1}, Stream::reduce_scatter);
      world.communicator({world.rank() % 2, world.rank() % 2 + 2}, Stream::outer_reduce);
    }
    if (world.rank() == 0) {
      EXPECT_THAT(world.describe(), HasSubstr("NCCL 2.28.9 (a fake), min_ctas=0"));
      EXPECT_THAT(world.describe(), HasSubstr("outer_reduce among ranks 0, 2: nothing issued"));
    }
  };
  EXPECT_EQ(run_fake({.ranks = 4}, body), "");
  EXPECT_THAT(fake_nccl::communicators(),
              testing::UnorderedElementsAre(
                  "the communicator of all 4 ranks", "all_gather among ranks 0, 1",
                  "all_gather among ranks 2, 3", "reduce_scatter among ranks 0, 1",
                  "reduce_scatter among ranks 2, 3", "outer_reduce among ranks 0, 2",
                  "outer_reduce among ranks 1, 3"));
  NcclPolicy shared;
  shared.separate_all_gather = false;
  EXPECT_EQ(run_fake({.policy = shared},
                     [](NcclWorld& world, CudaStream&) {
                       world.communicator({0, 1}, Stream::all_gather);
                       world.communicator({0, 1}, Stream::reduce_scatter);
                     }),
            "");
  EXPECT_THAT(fake_nccl::communicators(),
              ElementsAre("the communicator of all 2 ranks", "reduce_scatter among ranks 0, 1"));
}

/// What ranks issue on one communicator, and the buffers.
using Issues = std::function<void(Communicator&, CudaStream&, std::vector<float>&)>;

/// \returns what the fakes say of it, and why the run failed, if it did
std::vector<std::string> said_of(const Issues& issues) {
  std::vector<std::vector<float>> buffers(2, std::vector<float>(16));
  const std::string why =
      run_fake({.timeout_s = 5, .one_waits = true}, [&](NcclWorld& world, CudaStream& stream) {
        const auto group = world.communicator({0, 1}, Stream::reduce_scatter);
        issues(*group, stream, buffers[static_cast<std::size_t>(world.rank())]);
      });
  std::vector<std::string> lines = fake_cuda::complaints();
  for (const std::string& line : fake_nccl::unfinished()) lines.push_back(line);
  lines.push_back(why);
  return lines;
}

TEST(FakeNccl, NamesCollectivesThatRanksIssueInDifferentOrder) {
  EXPECT_THAT(said_of([](Communicator& group, CudaStream& stream, std::vector<float>& values) {
                for (const bool gathers : {group.rank() == 0, group.rank() != 0}) {
                  if (gathers) {
                    group.all_gather(TensorView(values).part(0, 8), values, 8, stream);
                  } else {
                    group.all_reduce(values, stream);
                  }
                }
              }),
              Contains(testing::ContainsRegex(
                  "^nccl[A-Za-z]+ 0 of reduce_scatter among ranks 0, 1: rank [01] issues "
                  "ncclA.* of (8|16) elements of 4 bytes, rank [01] issues ncclA.*")));
}

TEST(FakeNccl, NamesCollectivesOfDifferentSizeOrType) {
  for (const bool size : {true, false}) {
    EXPECT_THAT(said_of([&](Communicator& group, CudaStream& stream, std::vector<float>& values) {
                  const std::size_t count = size && group.rank() == 1 ? 9 : 16;
                  const bool narrow = !size && group.rank() == 1;
                  group.all_reduce(
                      {TensorView(values).data, count, narrow ? DType::bf16 : DType::fp32}, stream);
                }),
                Contains(testing::ContainsRegex(
                    "issues ncclAllReduce of (9|16) elements of [24] bytes, rank [01] issues "
                    "ncclAllReduce of (9|16) elements of [24] bytes")));
  }
}

TEST(FakeNccl, NamesTheRankThatDoesNotIssueACollective) {
  EXPECT_THAT(said_of([](Communicator& group, CudaStream& stream, std::vector<float>& values) {
                if (group.rank() == 0) group.all_reduce(values, stream);
              }),
              testing::AllOf(Contains(HasSubstr("can never go on")),
                             Contains(HasSubstr("rank 0 issued ncclAllReduce of 16 elements of 4 "
                                                "bytes as number 0 of reduce_scatter among ranks "
                                                "0, 1, not issued by rank 1"))));
}

TEST(FakeNccl, NamesMessagesThatTheOtherEndDoesNotIssue) {
  const auto rank_issues = [](int rank, const Message& message) {
    return said_of([=](Communicator& group, CudaStream& stream, std::vector<float>& values) {
      if (group.rank() != rank) return;
      Message own = message;
      if (own.sent.count > 0) own.sent.data = TensorView(values).data;
      if (own.received.count > 0) own.received.data = TensorView(values).data;
      group.send_receive({&own, 1}, stream);
    });
  };
  const TensorView four(nullptr, 4, DType::fp32);
  EXPECT_THAT(rank_issues(0, {1, four, {}}),
              Contains("rank 0 sent rank 1 a message of 4 elements of 4 bytes as number 0 of "
                       "reduce_scatter among ranks 0, 1, which it does not receive"));
  EXPECT_THAT(rank_issues(0, {1, {}, four}),
              Contains("rank 0 receives from rank 1 a message of 4 elements of 4 bytes as number 0 "
                       "of reduce_scatter among ranks 0, 1, which it does not send"));
}

TEST(FakeNccl, NamesMessagesOfWhichTheEndsHaveDifferentSizes) {
  EXPECT_THAT(
      said_of([](Communicator& group, CudaStream& stream, std::vector<float>& values) {
        const TensorView own(values);
        const bool sends = group.rank() == 1;
        const Message message = sends ? Message{0, ConstTensorView(own).part(0, 4), {}}
                                      : Message{1, {}, own.part(0, 5)};
        group.send_receive({&message, 1}, stream);
      }),
      Contains(testing::ContainsRegex(
          "^message 0 of reduce_scatter among ranks 0, 1: rank (0 issues message of 5|1 issues "
          "message of 4) elements of 4 bytes, rank (0 issues message of 5|1 issues message of "
          "4)")));
}

TEST(NcclWorld, RefusesRanksOfAnotherAttempt) {
  EXPECT_THAT(run_fake({.restart_of_rank_1 = 2}, [](NcclWorld&, CudaStream&) {}),
              testing::MatchesRegex("rank [01]: rank 1 was restarted 2 times and rank 0 0 times: "
                                    "they are not of one attempt"));
  EXPECT_THAT(fake_nccl::communicators(), IsEmpty());
}

NcclPolicy registering(bool windows) {
  NcclPolicy policy;
  policy.register_buffers = !windows;
  policy.symmetric_windows = windows;
  return policy;
}

void register_pages(NcclWorld& world, CudaStream& /*stream*/) {
  world.communicator({0, 1}, Stream::all_gather);
  const MappableMemory memory;
  world.register_memory(memory.bytes());
}

TEST(NcclWorld, RegistersMemoryAsThePolicySays) {
  for (const bool windows : {false, true}) {
    EXPECT_EQ(run_fake({.policy = registering(windows)}, register_pages), "");
    const auto calls = fake_cuda::calls();
    EXPECT_EQ(calls.contains("ncclCommRegister"), !windows);
    EXPECT_EQ(calls.contains("ncclCommWindowRegister"), windows);
    EXPECT_EQ(calls.at(windows ? "ncclCommWindowDeregister" : "ncclCommDeregister"), 2);
    EXPECT_THAT(fake_cuda::complaints(), IsEmpty());
  }
}

// NCCL says yes and gives no window where GPUs cannot map one another's memory.
TEST(NcclWorld, GivesBackNoWindowWhereNoneWasMade) {
  EXPECT_EQ(run_fake({.policy = registering(true)}, register_pages,
                     [] { fake_nccl::set_symmetric(false); }),
            "");
  EXPECT_FALSE(fake_cuda::calls().contains("ncclCommWindowDeregister"));
  EXPECT_THAT(fake_cuda::complaints(), IsEmpty());
}

// Windows are of memory that other GPUs can map, which is NCCL's own.
TEST(FakeNccl, RefusesWindowsOfOtherMemory) {
  alignas(4096) static std::byte memory[8192];
  EXPECT_THAT(run_fake({.policy = registering(true)},
                       [](NcclWorld& world, CudaStream&) {
                         world.communicator({0, 1}, Stream::all_gather);
                         world.register_memory(memory);
                       }),
              HasSubstr("ncclCommWindowRegister of all_gather among ranks 0, 1: invalid argument"));
}

// NCCL refuses two ranks on one GPU of one host.
TEST(NcclPolicy, GivesEachProcessThatSharesAGpuAHostOfItsOwn) {
  const std::map<std::string, std::string> expected = {
      {"NCCL_HOSTID", "shardwise-rank-3"}, {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"}};
  const auto expect_set = [&] {
    for (const auto& [name, value] : expected) EXPECT_EQ(std::getenv(name.c_str()), value) << name;
  };
  apply_shared_gpu(3, false);
  expect_set();
  EXPECT_EQ(std::getenv("NCCL_SOCKET_IFNAME"), nullptr);
  apply_shared_gpu(3, true);
  expect_set();
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "lo");
  setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
  apply_shared_gpu(3, true);
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "eth7");
  EXPECT_EQ(nccl_environment(),
            "NCCL_HOSTID=shardwise-rank-3 NCCL_MNNVL_ENABLE=0 NCCL_NVLS_ENABLE=0 "
            "NCCL_SOCKET_IFNAME=eth7");
  for (const auto& [name, value] : expected) unsetenv(name.c_str());
  unsetenv("NCCL_SOCKET_IFNAME");
  EXPECT_EQ(policy_of_shared_gpu({}).max_ctas, 2);
  NcclPolicy own;
  own.max_ctas = 8;
  EXPECT_EQ(policy_of_shared_gpu(own), own);
}

}  // namespace
}  // namespace shardwise::exec::test
