#include "executor/engine/communicator_table.h"

#include <cstddef>
#include <set>

#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

const std::vector<CollectiveWork>& collectives_of(const StageProgram& program,
                                                  const ProgramOp& op) {
  return program.costs[static_cast<std::size_t>(op.cost)].collectives;
}

}  // namespace

CommunicatorTable::CommunicatorTable(std::span<const StepProgram> programs, const Layout& layout,
                                     World& world) {
  std::set<Key> keys;
  for (const StepProgram& program : programs) {
    for (const StageProgram& stage : program.stages) {
      for (const ProgramOp& op : stage.operations) {
        for (const CollectiveWork& work : collectives_of(stage, op)) {
          keys.emplace(op.stream, work.group);
        }
      }
    }
  }
  for (const Key& key : keys) {
    communicators_[key] =
        world.communicator(group_ranks(layout, key.second, world.rank()), key.first);
  }
}

Communicator& CommunicatorTable::of(const StageProgram& program, const ProgramOp& op) const {
  const std::vector<CollectiveWork>& work = collectives_of(program, op);
  SHARDWISE_CHECK(work.size() == 1, name_of(program, op));
  return *communicators_.at({op.stream, work.front().group});
}

}  // namespace shardwise::exec
