#include "executor/engine/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "executor/device/cpu/cpu_device.h"

namespace shardwise::exec {
namespace {

/// Operations that allocate and free the buffer of their number.
class Program {
 public:
  explicit Program(std::vector<ProgramBuffer> buffers) { made_.buffers = std::move(buffers); }
  Program& op(Stream stream, std::vector<BufferId> allocates, std::vector<BufferId> frees) {
    ProgramOp op;
    op.stream = stream;
    op.allocates = list(allocates);
    op.frees = list(frees);
    made_.operations.push_back(op);
    return *this;
  }
  const StageProgram& get() const { return made_; }

 private:
  IndexRange list(const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(made_.indices.size());
    made_.indices.insert(made_.indices.end(), buffers.begin(), buffers.end());
    return {begin, static_cast<std::uint32_t>(made_.indices.size())};
  }
  StageProgram made_;
};

ProgramBuffer resident(std::int64_t bytes) {
  return {.category = MemoryCategory::weights, .bytes = bytes, .resident = true};
}
ProgramBuffer passing(std::int64_t bytes) {
  return {.category = MemoryCategory::activations, .bytes = bytes};
}

// A resident, moments that the second operation makes, and three buffers: two of compute, one after
// the other, and one beside them.
Program example() {
  ProgramBuffer moments = resident(70);
  moments.resident = false;
  moments.outlives = true;
  Program program({resident(100), moments, passing(200), passing(150), passing(90)});
  program.op(Stream::compute, {2}, {2})
      .op(Stream::compute, {1, 3}, {3})
      .op(Stream::all_gather, {4}, {4});
  return program;
}

TEST(MemoryItems, SayWhatIsThereWhen) {
  const Program program = example();
  const std::vector<MemoryItem> items = memory_items(program.get());
  ASSERT_EQ(items.size(), 5U);
  EXPECT_TRUE(items[0].from_start());
  EXPECT_EQ(items[0].category, MemoryCategory::weights);
  EXPECT_EQ(items[0].life.bytes, 100);
  EXPECT_TRUE(items[1].resident());  // it has its place from the start
  EXPECT_FALSE(items[1].from_start());
  EXPECT_EQ(items[1].made_by, 1U);
  EXPECT_FALSE(items[3].resident());
  EXPECT_EQ(items[3].life.first, 1U);
  EXPECT_EQ(items[3].life.last, 1U);
}

// Places are multiples of 64: residents 100 and 70 take 128 each, the two of compute share the 256
// that the larger takes, and 90 beside them take 128.
TEST(Arena, SharesMemoryBetweenWhatIsNeverThereAtOnce) {
  const Program program = example();
  Arena arena;
  arena.place(program.get(), memory_items(program.get()));
  CpuDevice device;
  arena.allocate(device);
  EXPECT_EQ(arena.bytes(), 128 + 128 + 256 + 128);
  EXPECT_EQ(arena.at(0, 2), arena.at(0, 3));
  std::vector<std::byte*> places = {arena.at(0, 0), arena.at(0, 1), arena.at(0, 2), arena.at(0, 4)};
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
  EXPECT_EQ(std::ssize(arena.memory()), arena.bytes());
  EXPECT_EQ(std::ranges::count(arena.memory(), std::byte{0}), arena.bytes());
}

// The arena is as large as the larger program needs; what was there in the first is in the second.
TEST(Arena, KeepsResidentsInTheirPlaceInEveryProgram) {
  const Program first = example();
  Program second({resident(100), passing(1000)});
  second.op(Stream::compute, {1}, {1});
  Arena arena;
  arena.place(first.get(), memory_items(first.get()));
  arena.place(second.get(), memory_items(second.get()));
  CpuDevice device;
  arena.allocate(device);
  EXPECT_EQ(arena.bytes(), 128 + 1024);
  EXPECT_EQ(arena.at(0, 0), arena.at(1, 0));
}

}  // namespace
}  // namespace shardwise::exec
