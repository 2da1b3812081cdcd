// Tensors and host bytes have groups of their own, and what a back end promises it says.
#include "executor/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

template <class Group>
concept SumsTensors = requires(Group& group, TensorView values, DeviceStream& stream) {
  group.all_reduce(values, stream);
};
template <class Group>
concept GathersBytes = requires(Group& group, std::span<std::byte> bytes) {
  group.all_gather_bytes(bytes, bytes);
};
template <class Purpose>
concept MakesControlGroup = requires(World& world, Purpose purpose) {
  world.control_group({0}, purpose);
};
template <class Purpose>
concept MakesCommunicator = requires(World& world, Purpose purpose) {
  world.communicator({0}, purpose);
};

// A mixed use does not compile, and this test then says which.
TEST(World, KeepsTensorsAndHostBytesApartByType) {
  static_assert(SumsTensors<Communicator> && !SumsTensors<ControlGroup>);
  static_assert(GathersBytes<ControlGroup> && !GathersBytes<Communicator>);
  static_assert(MakesControlGroup<Control> && !MakesControlGroup<Stream>);
  static_assert(MakesCommunicator<Stream> && !MakesCommunicator<Control>);
}

TEST(ThreadCommunicator, PromisesAllThatOnlySomeBackEndsDo) {
  AbortSignal abort;
  run_ranks(2, abort, [](World& world) {
    const CommunicatorTraits traits = world.communicator({0, 1}, Stream::compute)->traits();
    EXPECT_EQ(traits,
              (CommunicatorTraits{
                  .sums_in_rank_order = true, .adds_into_shard = true, .ragged_shards = true}));
  });
}

// In the order of ranks 1e8 swallows what is added to it; what was in the shard comes first.
TEST(ThreadCommunicator, SumsInTheOrderThatItsTraitSays) {
  AbortSignal abort;
  run_ranks(3, abort, [](World& world) {
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    DeviceStream stream;
    const float given[] = {1.0F, 1e8F, -1e8F};
    const std::vector<float> all(4, given[world.rank()]);
    const bool last = world.rank() == 2;  // its piece is empty: four elements in pieces of two
    std::vector<float> piece(last ? 0 : 2, 0.0F);
    group->reduce_scatter(all, piece, 2, false, stream);
    EXPECT_EQ(piece, std::vector<float>(last ? 0 : 2, 0.0F));
    std::vector<float> joined(last ? 0 : 2, -1.0F);
    group->reduce_scatter(all, joined, 2, true, stream);
    EXPECT_EQ(joined, std::vector<float>(last ? 0 : 2, (-1.0F + 1.0F + 1e8F) - 1e8F));
  });
}

TEST(ThreadCommunicator, ReceivesTheTensorsOfAPairInTheOrderInWhichTheyAreSent) {
  AbortSignal abort;
  run_ranks(3, abort, [](World& world) {
    const auto group = world.communicator(all_ranks(world), Stream::send);
    DeviceStream stream;
    const std::vector<float> sent = {1, 2, 3};
    const std::span<const float> all(sent);
    std::vector<float> received(3);
    const std::span<float> places(received);
    std::vector<Message> messages;
    if (world.rank() == 0) messages = {{2, all.first(1), {}}, {2, all.subspan(1), {}}};
    if (world.rank() == 2) messages = {{0, {}, places.first(1)}, {0, {}, places.subspan(1)}};
    group->send_receive(messages, stream);
    EXPECT_EQ(received, world.rank() == 2 ? sent : std::vector<float>(3));
  });
}

TEST(ThreadCommunicator, GathersBytesThatAreNoNumbers) {
  AbortSignal abort;
  run_ranks(2, abort, [](World& world) {
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    DeviceStream stream;
    const std::int64_t mine = INT64_C(0x7fa0'0001'ff80'0001) - world.rank();  // signalling NaNs
    std::vector<std::int64_t> all(2);
    all_gather_bytes(*group, std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(all)), stream);
    EXPECT_EQ(all[0], INT64_C(0x7fa0'0001'ff80'0001));
    EXPECT_EQ(all[1], INT64_C(0x7fa0'0001'ff80'0000));
  });
}

// Each would read the other's buffers as what they are not.
TEST(ThreadWorld, RefusesRanksOfAGroupThatMakeDifferentCalls) {
  AbortSignal abort;
  try {
    run_ranks(2, abort, [](World& world) {
      const auto group = world.communicator(all_ranks(world), Stream::compute);
      DeviceStream stream;
      std::vector<float> values(4);
      if (world.rank() == 0) {
        group->all_reduce(values, stream);
      } else {
        group->all_gather(std::span(values).first(2), values, 2, stream);
      }
    });
    FAIL() << "the run went on";
  } catch (const IoError& broken) {
    EXPECT_THAT(
        std::string(broken.what()),
        testing::AnyOf("rank 1 calls all_gather where rank 0 of its group calls all_reduce",
                       "rank 0 calls all_reduce where rank 1 of its group calls all_gather"));
  }
}

}  // namespace
}  // namespace shardwise::exec
