// Runs as each process of a job, by MPI or sockets: what processes get is what threads get, to the
// bit.
#include "executor/comm/sockets/process_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/sockets/socket_world.h"
#include "executor/comm/thread_world.h"
#ifdef SHARDWISE_WITH_MPI
#include "executor/comm/mpi_world.h"
#endif

namespace shardwise::exec {
namespace {

constexpr double kWorldPatience = 60;

std::unique_ptr<ProcessJob> join() {
  const char* const rank = std::getenv("RANK");
  const char* const size = std::getenv("WORLD_SIZE");
  const char* const port = std::getenv("MASTER_PORT");
  if (rank != nullptr && size != nullptr && port != nullptr) {
    const char* const run = std::getenv("TORCHELASTIC_RUN_ID");
    const Rendezvous at = {"localhost", std::atoi(port) + 1,
                           16,          std::string("test ") + (run != nullptr ? run : ""),
                           "",          true};
    return std::make_unique<SocketJob>(at, std::atoi(rank), std::atoi(size), kWorldPatience);
  }
#ifdef SHARDWISE_WITH_MPI
  return std::make_unique<MpiJob>(kWorldPatience, 0);
#else
  return nullptr;
#endif
}

ProcessJob& job() {
  static const std::unique_ptr<ProcessJob> kJob = join();
  return *kJob;
}

/// Values whose sums depend on their order.
std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 1.0F / (1.0F + static_cast<float>(rank) * 7.3F + static_cast<float>(i) * 0.37F);
  }
  return values;
}

/// What a rank gets from calls on a group of all.
using Calls = std::function<std::vector<float>(World& world, Communicator& group)>;

void expect_same_as_threads(const Calls& calls) {
  AbortSignal abort;
  const std::unique_ptr<World> world = job().world(abort, kWorldPatience);
  const std::vector<float> got =
      calls(*world, *world->communicator(all_ranks(*world), Stream::compute));
  std::vector<std::vector<float>> threads(static_cast<std::size_t>(job().size()));
  AbortSignal other;
  run_ranks(job().size(), other, [&](World& each) {
    threads[static_cast<std::size_t>(each.rank())] =
        calls(each, *each.communicator(all_ranks(each), Stream::compute));
  });
  EXPECT_EQ(got, threads[static_cast<std::size_t>(job().rank())]);
}

std::int64_t shard_of(std::size_t count, int ranks) {
  return (static_cast<std::int64_t>(count) + ranks - 1) / ranks;
}

// 3 ranks do not divide most of these: the last piece is short, and of 2 elements one is empty.
constexpr std::size_t kCounts[] = {2, 10, 9'001, 1'000'003};

TEST(ProcessWorld, GathersWhatThreadsGather) {
  for (const std::size_t count : kCounts) {
    expect_same_as_threads([count](World& world, Communicator& group) {
      const std::int64_t shard = shard_of(count, group.size());
      const std::vector<float> whole = values_of(world.rank(), count);
      const Piece own = piece_of(std::ssize(whole), shard, group.rank());
      const std::vector<float> mine(
          whole.begin() + static_cast<std::ptrdiff_t>(own.begin),
          whole.begin() + static_cast<std::ptrdiff_t>(own.begin + own.count));
      std::vector<float> all(count);
      DeviceStream stream;
      group.all_gather(mine, all, shard, stream);
      return all;
    });
  }
}

TEST(ProcessWorld, SumsInTheOrderInWhichThreadsDo) {
  for (const std::size_t count : kCounts) {
    for (const bool add : {false, true}) {
      expect_same_as_threads([count, add](World& world, Communicator& group) {
        const std::int64_t shard = shard_of(count, group.size());
        const std::vector<float> all = values_of(world.rank(), count);
        std::vector<float> piece(piece_of(std::ssize(all), shard, group.rank()).count, 0.5F);
        DeviceStream stream;
        group.reduce_scatter(all, piece, shard, add, stream);
        std::vector<float> reduced = all;
        group.all_reduce(reduced, stream);
        piece.insert(piece.end(), reduced.begin(), reduced.end());
        return piece;
      });
    }
  }
}

TEST(ProcessWorld, SendsEachPieceWhereThreadsDo) {
  expect_same_as_threads([](World& world, Communicator& group) {
    constexpr std::int64_t kShard = 700;
    const auto count = static_cast<std::size_t>(kShard * group.size());
    const std::vector<float> all = values_of(world.rank(), count);
    std::vector<float> received(count);
    DeviceStream stream;
    group.all_to_all(all, received, kShard, stream);
    std::vector<float> same(1'000, static_cast<float>(world.rank()));
    world.control_group(all_ranks(world), Control::results)
        ->broadcast(std::as_writable_bytes(std::span(same)), group.size() - 1);
    received.insert(received.end(), same.begin(), same.end());
    return received;
  });
}

// As two stages of a pipeline: each has a stream that sends and one that receives, and the two ways
// never meet, whichever comes first.
TEST(ProcessWorld, SendsBothWaysBetweenTwoStagesAtOnce) {
  expect_same_as_threads([](World& world, Communicator& all) {
    DeviceStream first_stream;
    std::vector<float> sum(1);
    all.all_reduce(sum, first_stream);  // none leaves a group whose connections others still make
    const bool takes_part = world.rank() < 2;
    const auto pair = [&](const std::vector<std::int64_t>& ranks) {
      return world.communicator(takes_part ? ranks : std::vector<std::int64_t>{world.rank()},
                                Stream::send);
    };
    const std::unique_ptr<Communicator> down = pair({0, 1});
    const std::unique_ptr<Communicator> up = pair({1, 0});
    std::vector<float> received(3'000);
    if (!takes_part) return received;
    const bool first = world.rank() == 0;
    const std::vector<float> sent = values_of(world.rank(), 1'000);
    std::thread sender([&] {
      DeviceStream stream;
      const Message message = {1, sent, {}};
      for (int i = 0; i < 3; ++i) (first ? *down : *up).send_receive({&message, 1}, stream);
    });
    DeviceStream stream;
    for (std::size_t i = 0; i < 3; ++i) {
      const Message message = {0, {}, std::span(received).subspan(i * 1'000, 1'000)};
      (first ? *up : *down).send_receive({&message, 1}, stream);
    }
    sender.join();
    return received;
  });
}

// Around a ring and back, two tensors each way: none waits for another.
TEST(ProcessWorld, SendsAndReceivesAsThreadsDo) {
  expect_same_as_threads([](World& world, Communicator& group) {
    DeviceStream stream;
    const std::vector<float> sent = values_of(world.rank(), 1'000);
    const std::span<const float> all(sent);
    std::vector<float> received(2'000);
    const std::span<float> places(received);
    const int next = (group.rank() + 1) % group.size();
    const int last = (group.rank() + group.size() - 1) % group.size();
    const Message messages[] = {{next, all.first(300), places.first(700)},
                                {next, all.subspan(300), places.subspan(700, 300)},
                                {last, all.first(700), places.subspan(1'000, 300)},
                                {last, all.subspan(700), places.subspan(1'300, 700)}};
    group.send_receive(messages, stream);
    return received;
  });
}

TEST(ProcessWorld, PromisesWhatThreadsPromise) {
  expect_same_as_threads([](World&, Communicator& group) {
    const CommunicatorTraits traits = group.traits();
    EXPECT_TRUE(traits.sums_in_rank_order && traits.adds_into_shard && traits.ragged_shards);
    DeviceStream stream;
    std::vector<float> sum(1);
    group.all_reduce(sum, stream);  // none leaves a group whose connections others still make
    return sum;
  });
}

// Groups of some ranks, in an order of their own, on several streams at once.
TEST(ProcessWorld, KeepsGroupsOfDifferentChannelsApart) {
  AbortSignal abort;
  const std::unique_ptr<World> world = job().world(abort, kWorldPatience);
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const Stream stream :
       {Stream::compute, Stream::copy, Stream::all_gather, Stream::reduce_scatter}) {
    groups.push_back(world->communicator(all_ranks(*world), stream));
  }
  std::vector<std::vector<float>> sums(groups.size());
  std::vector<std::jthread> streams;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    streams.emplace_back([&, g] {
      DeviceStream stream;
      for (int round = 0; round < 20; ++round) {
        sums[g].assign(1'000, static_cast<float>(g + 1));
        groups[g]->all_reduce(sums[g], stream);
      }
    });
  }
  streams.clear();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    EXPECT_EQ(sums[g], std::vector<float>(
                           1'000, static_cast<float>(g + 1) * static_cast<float>(job().size())));
  }
}

// A message that no buffer of the kernel's holds goes while its sender receives another.
TEST(ProcessWorld, SendsLongMessagesBothWaysAtOnce) {
  AbortSignal abort;
  const std::unique_ptr<World> world = job().world(abort, kWorldPatience);
  if (world->rank() > 1) return;
  const std::unique_ptr<ControlGroup> there = world->control_group({0, 1}, Control::results);
  const std::unique_ptr<ControlGroup> back = world->control_group({0, 1}, Control::records);
  constexpr std::size_t kLong = 20'000'000;
  const int other = 1 - world->rank();
  const std::vector<std::byte> sent(kLong, static_cast<std::byte>(world->rank() + 1));
  std::vector<std::byte> received(kLong);
  ControlGroup& to = world->rank() == 0 ? *there : *back;
  ControlGroup& from = world->rank() == 0 ? *back : *there;
  std::jthread sender([&] { to.send(sent, other); });
  from.receive(received, other);
  sender.join();
  EXPECT_EQ(received, std::vector<std::byte>(kLong, static_cast<std::byte>(other + 1)));
}

/// Makes a group of all and has all ranks but the last gather a byte in it.
void wait_for_last(World& world, Control control) {
  try {
    const std::unique_ptr<ControlGroup> group = world.control_group(all_ranks(world), control);
    std::vector<std::byte> all(static_cast<std::size_t>(world.size()));
    if (world.rank() != world.size() - 1) group->all_gather_bytes(std::vector<std::byte>(1), all);
  } catch (const Aborted&) {  // NOLINT(bugprone-empty-catch): the world's signal says why
  }
}

// Who waits for a rank of the group names it.
TEST(ProcessWorld, NamesTheRankThatDoesNotCome) {
  AbortSignal abort;
  const std::unique_ptr<World> patient = job().world(abort, kWorldPatience);
  const std::unique_ptr<ControlGroup> agreed =
      patient->control_group(all_ranks(*patient), Control::results);
  const int last = patient->size() - 1;
  std::string message;
  bool all_waited = false;
  // On a busy machine others may not even have joined in time: then all try again.
  for (int trial = 1; !all_waited && trial < 8; ++trial) {
    AbortSignal gave_up;
    const std::unique_ptr<World> world = job().world(gave_up, 0.1 * std::exp2(trial));
    wait_for_last(*world, static_cast<Control>(trial));
    // It has the connections until all have waited: to lose one is to learn of another failure.
    message = gave_up.message();
    const bool waited = world->rank() == last ||
                        message.find(" in all_gather_bytes for rank ") != std::string::npos;
    const std::vector<std::string> lacking = all_gather_texts(*agreed, waited ? "" : "not yet");
    all_waited = std::ranges::all_of(lacking, &std::string::empty);
  }
  if (patient->rank() == last) return;
  EXPECT_THAT(message,
              testing::ContainsRegex(" waited [0-9.]+ s in all_gather_bytes for rank [0-9, ]*" +
                                     std::to_string(last)));
}

}  // namespace
}  // namespace shardwise::exec

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
