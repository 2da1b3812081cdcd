#include "executor/comm/thread_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "executor/comm/barrier.h"
#include "executor/kernels/element.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using testing::ContainsRegex;

/// A value that no other rank or index has, whose sums depend on their order.
float value(int rank, std::size_t i) {
  return 1.0F / (1.0F + static_cast<float>(rank) * 7.3F + static_cast<float>(i) * 0.37F);
}

std::vector<float> rank_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}

/// The fold in rank order.
float sum_at(int ranks, std::size_t i) {
  float sum = value(0, i);
  for (int r = 1; r < ranks; ++r) sum += value(r, i);
  return sum;
}

// 10 elements do not divide by 4 ranks: the last piece is short, and of 3 elements one is empty.
TEST(ThreadWorld, GathersUnequalPieces) {
  for (const std::size_t count : {10U, 3U, 10'000U}) {
    AbortSignal abort;
    run_ranks(4, abort, [&](World& world) {
      DeviceStream stream;
      const auto group = world.communicator(all_ranks(world), Stream::compute);
      const std::int64_t shard = (static_cast<std::int64_t>(count) + 3) / 4;
      std::vector<float> all(count);
      const Piece own = piece_of(std::ssize(all), shard, group->rank());
      for (std::size_t i = 0; i < own.count; ++i) all[own.begin + i] = value(0, own.begin + i);
      group->all_gather(std::span(all).subspan(own.begin, own.count), all, shard, stream);
      EXPECT_EQ(all, rank_values(0, count));
    });
  }
}

TEST(ThreadWorld, SumsInTheOrderOfRanks) {
  constexpr std::size_t kCount = 9'001;
  AbortSignal abort;
  run_ranks(4, abort, [&](World& world) {
    DeviceStream stream;
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    const std::vector<float> mine = rank_values(world.rank(), kCount);
    std::vector<float> reduced = mine;
    group->all_reduce(reduced, stream);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(reduced[i], sum_at(4, i));

    const std::int64_t shard = (kCount + 3) / 4;
    const Piece own = piece_of(kCount, shard, group->rank());
    std::vector<float> piece(own.count, 0.5F);
    group->reduce_scatter(mine, piece, shard, false, stream);
    for (std::size_t i = 0; i < own.count; ++i) ASSERT_EQ(piece[i], sum_at(4, own.begin + i));
    std::ranges::fill(piece, 0.5F);
    group->reduce_scatter(mine, piece, shard, true, stream);
    for (std::size_t i = 0; i < own.count; ++i) {
      float sum = 0.5F;
      for (int r = 0; r < 4; ++r) sum += value(r, own.begin + i);
      ASSERT_EQ(piece[i], sum);
    }
  });
}

// 1 + 3 x 2^-8 is lost bit by bit when each addition is rounded to 8 bits, and kept when they are
// summed first: 2^-8 is half a unit in the last place of 1 in bf16, and ties go to even.
TEST(ThreadWorld, RoundsEachAdditionOfBf16Numbers) {
  AbortSignal abort;
  run_ranks(4, abort, [&](World& world) {
    DeviceStream stream;
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    const float own = world.rank() == 0 ? 1.0F : 1.0F / 256;
    std::vector<Bf16> mine(8, from_float<Bf16>(own));
    const TensorView all(reinterpret_cast<std::byte*>(mine.data()), mine.size(), DType::bf16);
    std::vector<float> wide(2, 1.0F / 256);
    group->reduce_scatter(all, wide, 2, true, stream);
    EXPECT_EQ(wide,
              std::vector<float>(2, 1 + 1.0F / 256));  // the sum, 1, then joins what was there
    group->all_reduce(all, stream);
    for (const Bf16 each : mine) EXPECT_EQ(to_float(each), 1.0F);
    const TensorView piece = all.part(2 * static_cast<std::size_t>(world.rank()), 2);
    mine[2 * static_cast<std::size_t>(world.rank())] = from_float<Bf16>(own);
    group->all_gather(piece, all, 2, stream);
    EXPECT_EQ(to_float(mine[0]), 1.0F);
    EXPECT_EQ(to_float(mine[6]), 1.0F / 256);
  });
}

TEST(ThreadWorld, MovesBytesBetweenRanks) {
  AbortSignal abort;
  run_ranks(3, abort, [&](World& world) {
    const auto group = world.control_group(all_ranks(world), Control::results);
    const auto self = static_cast<std::byte>(world.rank());
    std::vector<std::byte> all(3);
    group->all_gather_bytes({&self, 1}, all);
    EXPECT_EQ(all, (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{2}}));
    std::byte told = self;
    group->broadcast({&told, 1}, 2);
    EXPECT_EQ(told, std::byte{2});
    if (world.rank() == 2) return;
    const auto pair = world.control_group({0, 1}, Control::records);
    std::byte message{42};
    if (world.rank() == 0) {
      pair->send({&message, 1}, 1);
    } else {
      message = std::byte{0};
      pair->receive({&message, 1}, 0);
      EXPECT_EQ(message, std::byte{42});
    }
  });
}

TEST(ThreadWorld, SendsEachPieceToItsRank) {
  AbortSignal abort;
  run_ranks(3, abort, [&](World& world) {
    DeviceStream stream;
    const auto group = world.communicator(all_ranks(world), Stream::compute);
    // Of five elements the last rank's piece is short.
    std::vector<float> sent(5);
    for (std::size_t i = 0; i < 5; ++i) sent[i] = static_cast<float>(10 * world.rank()) + float(i);
    std::vector<float> received(6, -1);
    group->all_to_all(sent, received, 2, stream);
    for (std::size_t r = 0; r < 3; ++r) {
      const auto first = static_cast<float>(10 * r + 2 * static_cast<std::size_t>(world.rank()));
      EXPECT_EQ(received[2 * r], first);
      EXPECT_EQ(received[2 * r + 1], world.rank() == 2 ? -1 : first + 1);
    }
  });
}

// Two streams use groups of the same ranks: their calls never meet one another.
TEST(ThreadWorld, KeepsGroupsOfDifferentNumbersApart) {
  AbortSignal abort;
  run_ranks(2, abort, [&](World& world) {
    DeviceStream stream;
    const auto first = world.communicator(all_ranks(world), Stream::all_gather);
    const auto second = world.communicator(all_ranks(world), Stream::reduce_scatter);
    std::vector<float> a(4, static_cast<float>(world.rank()));
    std::vector<float> b(4, 10);
    std::thread beside([&] {
      DeviceStream other;
      second->all_reduce(b, other);
    });
    first->all_reduce(a, stream);
    beside.join();
    EXPECT_EQ(a, std::vector<float>(4, 1));
    EXPECT_EQ(b, std::vector<float>(4, 20));
  });
}

// The thread of a rank that sends may get no processor for a while after both are there.
TEST(ThreadWorld, LetsAReceiverGoOnBeforeTheSendersThread) {
  AbortSignal abort;
  Barrier barrier({0, 1}, abort, std::chrono::seconds(60));
  std::atomic<bool> received{false};
  std::jthread sender([&] {
    barrier.wait(0, "send_receive");
    received.wait(false);
    barrier.wait(0, "send_receive");
    barrier.wait(0, "send_receive");
  });
  barrier.wait(1, "send_receive");
  barrier.leave(1, "send_receive");  // the sender comes after it alone
  received = true;
  received.notify_all();
  barrier.wait(1, "send_receive");  // the next message, not this one's end
}

TEST(ThreadWorld, ReceivesMessagesOneAfterTheOther) {
  constexpr int kMessages = 200;
  AbortSignal abort;
  run_ranks(2, abort, [&](World& world) {
    DeviceStream stream;
    const auto pair = world.communicator(all_ranks(world), Stream::send);
    std::vector<float> buffer(64);
    for (int i = 0; i < kMessages; ++i) {
      Message message;
      message.peer = 1 - world.rank();
      const bool sends = world.rank() == 0;
      std::ranges::fill(buffer, sends ? static_cast<float>(i) : -1.0F);
      (sends ? static_cast<void>(message.sent = TensorView(std::span(buffer)))
             : static_cast<void>(message.received = TensorView(std::span(buffer))));
      pair->send_receive({&message, 1}, stream);
      EXPECT_EQ(buffer.front(), static_cast<float>(i));
      EXPECT_EQ(buffer.back(), static_cast<float>(i));
    }
  });
}

TEST(ThreadWorld, EndsAllRanksWithTheMessageOfTheOneThatFailed) {
  AbortSignal abort;
  try {
    run_ranks(4, abort, [&](World& world) {
      DeviceStream stream;
      const auto group = world.communicator(all_ranks(world), Stream::compute);
      if (world.rank() == 2) throw std::runtime_error("out of ideas");
      std::vector<float> values(8);
      for (;;) group->all_reduce(values, stream);
    });
    FAIL() << "the run went on";
  } catch (const IoError& broken) {
    EXPECT_STREQ(broken.what(), "rank 2: out of ideas");
  }
}

TEST(ThreadWorld, NamesTheRankThatDoesNotCome) {
  AbortSignal abort;
  try {
    run_ranks(
        3, abort,
        [&](World& world) {
          DeviceStream stream;
          const auto group = world.communicator(all_ranks(world), Stream::compute);
          std::vector<float> values(8);
          if (world.rank() != 1) group->all_reduce(values, stream);
        },
        std::chrono::milliseconds(50));
    FAIL() << "the run went on";
  } catch (const IoError& broken) {
    // On a busy machine the third one may come later than that.
    EXPECT_THAT(broken.what(), ContainsRegex("in all_reduce for rank (0, )?1"));
  }
}

}  // namespace
}  // namespace shardwise::exec
