#include "simulator/clock/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "planner/spec/text/units.h"
#include "simulator/clock/caching_allocator.h"
#include "simulator/clock/engine.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

constexpr std::int64_t kMiB = (1_MiB).value();

MemoryCourse course_of(const HandMade& made, AllocatorKind kind) {
  const Timeline timeline = run_alone(representatives(made.program, made.prices));
  return memory_over_time(made.program.stages[0], timeline.start, timeline.end, kind);
}

// Each figure follows from pytorch's c10/core/AllocatorConfig.h by hand.
TEST(CachingAllocator, ServesSmallRequestsFromOneSegmentOfTwoMebibytes) {
  CachingAllocator allocator;
  allocator.allocate(1000, Stream::compute);
  allocator.allocate(1, Stream::compute);
  EXPECT_EQ(allocator.allocated(), 1024 + 512);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  allocator.allocate(kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
  allocator.allocate(kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 4 * kMiB);
}

TEST(CachingAllocator, ServesMiddlingRequestsFromSegmentsOfTwentyMebibytes) {
  CachingAllocator allocator;
  allocator.allocate(5 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  allocator.allocate(9 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  allocator.allocate(7 * kMiB, Stream::compute);  // 6 MiB are left
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocator, RoundsTheSegmentOfALargeRequestToTwoMebibytes) {
  CachingAllocator allocator;
  allocator.allocate(10 * kMiB + 1, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 12 * kMiB);
  // The 2 MiB less 512 B that are left are more than 1 MiB, so the block was split.
  EXPECT_EQ(allocator.allocated(), 10 * kMiB + 512);
}

TEST(CachingAllocator, LeavesAMebibyteUnsplit) {
  CachingAllocator allocator;
  allocator.allocate(11 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 12 * kMiB);
  EXPECT_EQ(allocator.allocated(), 12 * kMiB);
}

TEST(CachingAllocator, KeepsThePoolsOfStreamsApart) {
  CachingAllocator allocator;
  allocator.release(allocator.allocate(64 * kMiB, Stream::compute));
  allocator.allocate(64 * kMiB, Stream::all_gather);
  EXPECT_EQ(allocator.reserved(), 128 * kMiB);
  allocator.allocate(64 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 128 * kMiB);
}

TEST(CachingAllocator, CannotJoinFreeBlocksOfTwoSegments) {
  CachingAllocator allocator;
  const auto a = allocator.allocate(32 * kMiB, Stream::compute);
  const auto b = allocator.allocate(32 * kMiB, Stream::compute);
  allocator.release(a);
  allocator.release(b);
  allocator.allocate(64 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.allocated(), 64 * kMiB);
  EXPECT_EQ(allocator.reserved(), 128 * kMiB);
}

TEST(CachingAllocator, JoinsFreeNeighboursWhateverTheOrderTheyAreFreedIn) {
  CachingAllocator allocator;
  std::vector<std::int32_t> blocks;
  blocks.push_back(allocator.allocate(100 * kMiB, Stream::compute));
  allocator.release(blocks[0]);
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(25 * kMiB, Stream::compute));
  for (const int i : {2, 4, 1, 3}) allocator.release(blocks[static_cast<std::size_t>(i)]);
  allocator.allocate(100 * kMiB, Stream::compute);
  EXPECT_EQ(allocator.reserved(), 100 * kMiB);
}

TEST(CachingAllocator, ReservesNoLessThanItAllocatesInAnyOrder) {
  std::mt19937 random(7);
  CachingAllocator allocator;
  std::vector<std::int32_t> live;
  std::int64_t last = 0;
  for (int i = 0; i < 5000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const auto stream = random() % 2 == 0 ? Stream::compute : Stream::copy;
      live.push_back(allocator.allocate(static_cast<std::int64_t>(random() % (1U << 25U)), stream));
    } else {
      std::swap(live[random() % live.size()], live.back());
      allocator.release(live.back());
      live.pop_back();
    }
    ASSERT_GE(allocator.reserved(), allocator.allocated());
    ASSERT_GE(allocator.reserved(), last);
    last = allocator.reserved();
  }
  for (const std::int32_t block : live) allocator.release(block);
  EXPECT_EQ(allocator.allocated(), 0);
}

TEST(MemoryOverTime, AddsUpWhatIsAliveInAnArena) {
  HandMade made;
  const auto weights = made.buffer(0, 100, MemoryCategory::weights, true);
  const auto kept = made.buffer(0, 10);
  const auto scratch = made.buffer(0, 7, MemoryCategory::working);
  const auto next = made.buffer(0, 5, MemoryCategory::working);
  const auto first = made.add(0, Stream::compute, 1);
  const auto second = made.add(0, Stream::compute, 1);
  made.allocates(0, first, {kept, scratch});
  made.frees(0, first, {scratch});
  made.allocates(0, second, {next});
  made.frees(0, second, {kept, next});
  const MemoryCourse course = course_of(made, AllocatorKind::arena);
  EXPECT_EQ(course.peak_allocated, 117);
  EXPECT_EQ(course.peak_reserved, 117);
  EXPECT_EQ(course.peak_at, 0);
  EXPECT_EQ(course.alive, (std::vector<std::uint32_t>{weights, kept, scratch}));
  ASSERT_EQ(course.moments.size(), 3U);
  EXPECT_EQ(course.moments[1].allocated, 115);  // scratch is gone before `next` comes
  EXPECT_EQ(course.moments[2].allocated, 100);
}

TEST(MemoryOverTime, EndsAsItBeganWhenAllIsFreed) {
  HandMade made;
  made.buffer(0, 1000, MemoryCategory::weights, true);
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto op = made.add(0, static_cast<Stream>(random() % 3), 1);
    made.allocates(0, op, {made.buffer(0, 1 + static_cast<std::int64_t>(random() % 4096))});
    made.frees(0, op, {i + 1});
  }
  const MemoryCourse course = course_of(made, AllocatorKind::arena);
  for (const MemoryMoment& moment : course.moments) EXPECT_GE(moment.allocated, 1000);
  EXPECT_EQ(course.moments.back().allocated, 1000);
  EXPECT_TRUE(course.misused.empty());
}

TEST(MemoryOverTime, NamesABufferThatIsFreedTwice) {
  HandMade made;
  const auto buffer = made.buffer(0, 8);
  const auto op = made.add(0, Stream::compute, 1);
  made.allocates(0, op, {buffer});
  made.frees(0, op, {buffer});
  made.frees(0, made.add(0, Stream::compute, 1), {buffer});
  EXPECT_EQ(course_of(made, AllocatorKind::arena).misused, (std::vector<std::uint32_t>{buffer}));
}

// Weights of 10 are there all along. Activations of 6 live from 0 to 3, gradients of 5 from 2 to 5.
TEST(CategoryColumns, HaveTheFullestMomentOfEachPart) {
  HandMade made;
  made.buffer(0, 10, MemoryCategory::weights, /*resident=*/true);
  const auto activations = made.buffer(0, 6, MemoryCategory::activations);
  const auto gradients = made.buffer(0, 5, MemoryCategory::gradients);
  const auto forward = made.add(0, Stream::compute, 2);
  const auto backward = made.add(0, Stream::compute, 1);
  const auto optimizer = made.add(0, Stream::compute, 2);
  made.allocates(0, forward, {activations});
  made.allocates(0, backward, {gradients});
  made.frees(0, backward, {activations});
  made.frees(0, optimizer, {gradients});
  const Timeline timeline = run_alone(representatives(made.program, made.prices));
  const std::vector<CategoryBytes> columns =
      category_columns(made.program.stages[0], timeline.start, timeline.end, AllocatorKind::arena,
                       timeline.length(), 4);
  // Parts begin at 0, 1.25, 2.5 and 3.75.
  const std::array<std::int64_t, 4> held = {6, 6, 6, 0};
  const std::array<std::int64_t, 4> reduced = {0, 5, 5, 5};
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(columns[c][static_cast<std::size_t>(MemoryCategory::weights)], 10) << c;
    EXPECT_EQ(columns[c][static_cast<std::size_t>(MemoryCategory::activations)], held[c]) << c;
    EXPECT_EQ(columns[c][static_cast<std::size_t>(MemoryCategory::gradients)], reduced[c]) << c;
  }
}

TEST(CategoryColumns, SumToTheClocksBytesUnderBothAllocators) {
  for (const AllocatorKind kind : {AllocatorKind::arena, AllocatorKind::caching}) {
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      HandMade made;
      std::vector<std::uint32_t> live;
      for (int i = 0; i < 300; ++i) {
        const auto op = made.add(0, Stream::compute, 1 + static_cast<double>(random() % 5));
        const auto category = static_cast<MemoryCategory>(random() % 10);
        const auto bytes = static_cast<std::int64_t>(random() % 40'000'000) + 1;
        const auto fresh = made.buffer(0, bytes, category);
        made.allocates(0, op, {fresh});
        live.push_back(fresh);
        if (random() % 2 == 0) {
          const std::size_t gone = random() % live.size();
          made.frees(0, op, {live[gone]});
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(gone));
        }
      }
      const Timeline timeline = run_alone(representatives(made.program, made.prices));
      const MemoryCourse course = course_of(made, kind);
      constexpr std::size_t kColumns = 97;
      const std::vector<CategoryBytes> columns = category_columns(
          made.program.stages[0], timeline.start, timeline.end, kind, timeline.length(), kColumns);
      ASSERT_EQ(columns.size(), kColumns);
      std::int64_t most = 0;
      for (std::size_t c = 0; c < kColumns; ++c) {
        std::int64_t sum = 0;
        for (const std::int64_t each : columns[c]) sum += each;
        most = std::max(most, sum);
        // At least what the clock has at any moment of that part.
        const double column = timeline.length() / kColumns;
        for (const MemoryMoment& moment : course.moments) {
          const double place = moment.at / column;
          if (static_cast<std::size_t>(place) == c) {
            EXPECT_GE(sum, moment.allocated);
          }
        }
      }
      EXPECT_EQ(most, course.peak_allocated);
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
