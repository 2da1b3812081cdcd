#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "executor/comm/world.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// The communicators of a rank's programs, one for each stream and kind of group whose ranks it has
/// operations with. All are made up front: on some back ends that is a collective of the whole job,
/// so every rank makes the same ones in the same order, whichever stage it runs.
class CommunicatorTable {
 public:
  /// \param programs  of the job: all stages, all kinds of steps
  CommunicatorTable(std::span<const StepProgram> programs, const Layout& layout, World& world);
  /// \pre the operation is one of a program's and communicates in one collective
  Communicator& of(const StageProgram& program, const ProgramOp& op) const;

 private:
  using Key = std::pair<Stream, GroupKind>;
  std::map<Key, std::unique_ptr<Communicator>> communicators_;
};

}  // namespace shardwise::exec
