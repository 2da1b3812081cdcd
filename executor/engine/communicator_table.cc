#include "executor/engine/communicator_table.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "executor/engine/rank_place.h"
#include "planner/lowering/finish_step.h"
#include "planner/lowering/operands/table_shards.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

const std::vector<CollectiveWork>& collectives_of(const StageProgram& program,
                                                  const ProgramOp& op) {
  return program.costs[static_cast<std::size_t>(op.cost)].collectives;
}

}  // namespace

CommunicatorTable::CommunicatorTable(std::span<const StepProgram> programs, const Layout& layout,
                                     World& world, std::int64_t copies)
    : cuts_table_(cuts_table(layout)), copies_(copies) {
  std::set<Key> keys;
  for (const StepProgram& program : programs) {
    for (const StageProgram& stage : program.stages) {
      for (const ProgramOp& op : stage.operations) {
        for (const CollectiveWork& work : collectives_of(stage, op)) {
          keys.insert(key_of(stage, op, work));
        }
      }
    }
  }
  for (const Key& key : keys) {
    communicators_[key] = world.communicator(ranks_of(key, layout, world.rank()), key.stream);
  }
}

Communicator& CommunicatorTable::of(const StageProgram& program, const ProgramOp& op) const {
  const std::vector<CollectiveWork>& work = collectives_of(program, op);
  SHARDWISE_CHECK(work.size() == 1, name_of(program, op));
  return *communicators_.at(key_of(program, op, work.front()));
}

CommunicatorTable::Key CommunicatorTable::key_of(const StageProgram& program, const ProgramOp& op,
                                                 const CollectiveWork& work) const {
  const auto sums = [&](std::int32_t part) {
    return op.role == OpRole::finalize && op.part == part;
  };
  if (op.message < 0) {
    const bool table = cuts_table_ && sums(FinalizePart::kTiedEmbedding);
    const std::int64_t copies = sums(FinalizePart::kCopiedHeads) ? copies_ : 0;
    return {op.stream, work.group, work.ends, table, copies, -1, -1};
  }
  const bool sends = op.stream == Stream::send;
  return {Stream::send,
          work.group,
          false,
          false,
          0,
          sends ? program.stage : op.peer,
          sends ? op.peer : program.stage};
}

std::vector<std::int64_t> CommunicatorTable::ranks_of(const Key& key, const Layout& layout,
                                                      std::int64_t rank) {
  const std::vector<std::int64_t> group = group_ranks(layout, key.group, rank);
  const auto own = std::ranges::find(group, rank) - group.begin();
  const auto at = [&](std::int64_t stage) { return group[static_cast<std::size_t>(stage)]; };
  if (key.from >= 0) {
    if (own != key.from && own != key.to) return {rank};
    return {at(key.from), at(key.to)};
  }
  if (key.table) {
    const bool has = own == 0 || own + 1 == std::ssize(group);
    return has ? table_ranks(layout, rank) : std::vector<std::int64_t>{rank};
  }
  if (key.copies > 0) {
    const auto first = group.begin() + own / key.copies * key.copies;
    return {first, first + key.copies};
  }
  if (!key.ends) return group;
  const std::int64_t mirror = std::ssize(group) - 1 - own;
  if (mirror == own) return {rank};
  return {at(std::min(own, mirror)), at(std::max(own, mirror))};
}

}  // namespace shardwise::exec
