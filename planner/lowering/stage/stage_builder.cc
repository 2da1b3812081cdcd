#include "planner/lowering/stage/stage_builder.h"

#include <string>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise {

void StageBuilder::expect(std::size_t operations) {
  program_.operations.reserve(operations);
  program_.indices.reserve((lists_buffers_ ? 4 : 2) * operations);
}

std::int32_t StageBuilder::cost(OpCost cost) {
  program_.costs.push_back(std::move(cost));
  return static_cast<std::int32_t>(program_.costs.size()) - 1;
}

std::int32_t StageBuilder::layer_cost(const LayerWork& work, double launches) {
  OpCost whole;
  whole.layers.push_back(work);
  whole.launches = launches;
  return cost(std::move(whole));
}

std::int32_t StageBuilder::collective_cost(const CollectiveWork& work, double launches) {
  for (std::size_t i = 0; i < program_.costs.size(); ++i) {
    const OpCost& each = program_.costs[i];
    if (!each.collectives.empty() && each.collectives.front() == work &&
        each.launches == launches) {
      return static_cast<std::int32_t>(i);
    }
  }
  OpCost one;
  one.collectives.push_back(work);
  one.launches = launches;
  return cost(std::move(one));
}

std::int32_t StageBuilder::traffic_cost(double bytes, double launches, MoveKind move) {
  if (bytes <= 0) return -1;
  for (std::size_t i = 0; i < program_.costs.size(); ++i) {
    const OpCost& each = program_.costs[i];
    if (each.kernels.size() == 1 && each.kernels.front().kind == KernelKind::memory_bound &&
        each.kernels.front().move == move && each.kernels.front().bytes == bytes &&
        each.launches == launches) {
      return static_cast<std::int32_t>(i);
    }
  }
  OpCost one;
  KernelWork kernel;
  kernel.move = move;
  kernel.bytes = bytes;
  kernel.launches = launches;
  one.kernels.push_back(kernel);
  one.launches = launches;
  return cost(std::move(one));
}

BufferId StageBuilder::buffer(MemoryCategory category, std::int64_t bytes, std::int32_t layer,
                              std::int32_t microbatch) {
  if (bytes <= 0) return kNone;
  program_.buffers.push_back({category, bytes, layer, microbatch, false, false});
  return static_cast<BufferId>(program_.buffers.size()) - 1;
}

void StageBuilder::resident(MemoryCategory category, std::int64_t bytes) {
  if (bytes > 0) program_.buffers.push_back({category, bytes, -1, -1, true, false});
}

BufferId StageBuilder::lasting(MemoryCategory category, std::int64_t bytes) {
  const BufferId id = buffer(category, bytes);
  if (id != kNone) program_.buffers[id].outlives = true;
  return id;
}

IndexRange StageBuilder::list(std::span<const std::uint32_t> indices) {
  IndexRange range;
  range.begin = static_cast<std::uint32_t>(program_.indices.size());
  for (const std::uint32_t index : indices) {
    if (index != kNone) program_.indices.push_back(index);
  }
  range.end = static_cast<std::uint32_t>(program_.indices.size());
  return range;
}

void StageBuilder::also_frees(OpId op, BufferId buffer) {
  if (!lists_buffers_) return;
  ProgramOp& at = program_.operations[op];
  const std::span<const std::uint32_t> listed = program_.of(at.frees);
  std::vector<std::uint32_t> frees(listed.begin(), listed.end());
  frees.push_back(buffer);
  at.frees = list(frees);
}

OpId StageBuilder::add(ProgramOp op, std::span<const OpId> waits,
                       std::span<const BufferId> allocates, std::span<const BufferId> frees,
                       std::span<const BufferId> uses) {
  SHARDWISE_CHECK(op.cost >= 0, std::string(name_of(op.role)));
  op.waits = list(waits);
  if (lists_buffers_) op.allocates = list(allocates);
  const auto make = [&](std::vector<BufferId>& due) {
    if (!lists_buffers_) return due.clear();
    program_.indices.insert(program_.indices.end(), due.begin(), due.end());
    op.allocates.end += static_cast<std::uint32_t>(due.size());
    due.clear();
  };
  if (op.stream == Stream::compute) make(due_);
  if (op.stream == Stream::compute || op.stream == Stream::receive) {
    if (!due_first_.empty()) first_ = static_cast<OpId>(program_.operations.size());
    make(due_first_);
  }
  if (lists_buffers_) {
    op.frees = list(frees);
    op.uses = list(uses);
  }
  const auto id = static_cast<OpId>(program_.operations.size());
  program_.operations.push_back(op);
  last_[static_cast<std::size_t>(op.stream)] = id;
  return id;
}

}  // namespace shardwise
