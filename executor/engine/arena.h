#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/lowering/arena_layout.h"
#include "planner/spec/ledger.h"
#include "planner/spec/step_program.h"

namespace shardwise::exec {

/// Number of an item of a rank's memory.
using ItemId = std::size_t;
inline constexpr ItemId kNoItem = SIZE_MAX;

/// What a rank's memory is for, and when.
struct MemoryItem {
  MemoryCategory category = MemoryCategory::working;
  ArenaItem life;
  /// A resident that an operation makes, kNone for one that is there from the start: its place is
  /// kept for it, and nothing is in it before.
  OpId made_by = kNone;

  bool resident() const { return life.first == kNone; }
  bool from_start() const { return resident() && made_by == kNone; }
};

/// Collects what a program's operations need in memory: an item lives from the first operation that
/// touches it to the last.
class MemoryItems {
 public:
  /// One that is there all the time.
  ItemId resident(MemoryCategory category, std::int64_t bytes);
  /// One that lives as long as it is touched.
  ItemId item(MemoryCategory category, std::int64_t bytes);
  void touch(ItemId item, OpId op);
  /// The residents of a category begin with this operation.
  void begin_residents(MemoryCategory category, OpId op);
  const std::vector<MemoryItem>& all() const { return items_; }

 private:
  std::vector<MemoryItem> items_;
};

/// One block of memory, and where each program of a run puts its items in it. Residents lie at the
/// same place in all programs.
class Arena {
 public:
  /// Places the items of a program. \pre its residents are those of the programs before, in order
  void place(const StageProgram& program, const std::vector<MemoryItem>& items);
  /// Takes the memory, zeros. \pre all programs are placed
  void allocate();

  std::byte* at(std::size_t program, ItemId item) const {
    return memory_.get() + layouts_[program].offsets[item];
  }
  std::int64_t bytes() const { return bytes_; }
  const ArenaLayout& layout(std::size_t program) const { return layouts_[program]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::vector<ArenaLayout> layouts_;
  std::int64_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> memory_;  // NOLINT(*avoid-c-arrays)
};

}  // namespace shardwise::exec
