#include "executor/engine/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace shardwise::exec {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

ItemId MemoryItems::resident(MemoryCategory category, std::int64_t bytes) {
  items_.push_back({category, {bytes, kNone, kNone}, kNone});
  return items_.size() - 1;
}

ItemId MemoryItems::item(MemoryCategory category, std::int64_t bytes) {
  return resident(category, bytes);
}

void MemoryItems::touch(ItemId item, OpId op) {
  ArenaItem& life = items_[item].life;
  life.first = std::min(life.first, op);
  life.last = life.last == kNone ? op : std::max(life.last, op);
}

void MemoryItems::begin_residents(MemoryCategory category, OpId op) {
  for (MemoryItem& item : items_) {
    if (item.resident() && item.category == category) item.made_by = op;
  }
}

void Arena::place(const StageProgram& program, const std::vector<MemoryItem>& items) {
  std::vector<ArenaItem> lives;
  lives.reserve(items.size());
  for (const MemoryItem& item : items) lives.push_back(item.life);
  layouts_.push_back(arena_layout(program, DependencyOrder(program), lives));
  bytes_ = std::max(bytes_, layouts_.back().bytes);
}

void Arena::allocate() {
  const auto bytes = static_cast<std::size_t>(bytes_);
  memory_.reset(static_cast<std::byte*>(::operator new[](bytes, kPage)));
  std::memset(memory_.get(), 0, bytes);
}

void Arena::Free::operator()(std::byte* memory) const { ::operator delete[](memory, kPage); }

}  // namespace shardwise::exec
