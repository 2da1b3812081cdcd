#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/device/device.h"
#include "planner/lowering/checks/arena_layout.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Number of an item of a rank's memory: of the program's buffer.
using ItemId = std::size_t;

/// Memory of a rank: what it is for, and when.
struct MemoryItem {
  MemoryCategory category = MemoryCategory::working;
  ArenaItem life;
  /// A resident that an operation makes, kNone for one that is there from the start: its place is
  /// kept for it, and nothing is in it before.
  OpId made_by = kNone;

  bool resident() const { return life.first == kNone; }
  bool from_start() const { return resident() && made_by == kNone; }
};

/// The buffers of a run's program (lower_to_run()), each an item of the same number.
std::vector<MemoryItem> memory_items(const StageProgram& program);

/// One block of memory, and where each program of a run puts its items in it. Residents lie at the
/// same place in all programs.
class Arena {
 public:
  /// Places the items of a program. \pre its residents are those of the programs before, in order
  void place(const StageProgram& program, const std::vector<MemoryItem>& items);
  /// Takes the memory from the device, zeros. \pre all programs are placed
  void allocate(Device& device);

  std::byte* at(std::size_t program, ItemId item) const {
    return memory_.at() + layouts_[program].offsets[item];
  }
  std::int64_t bytes() const { return bytes_; }
  std::span<std::byte> memory() const {
    return {memory_.at(), static_cast<std::size_t>(memory_.bytes())};
  }
  const ArenaLayout& layout(std::size_t program) const { return layouts_[program]; }

 private:
  std::vector<ArenaLayout> layouts_;
  std::int64_t bytes_ = 0;
  DeviceMemory memory_;
};

}  // namespace shardwise::exec
