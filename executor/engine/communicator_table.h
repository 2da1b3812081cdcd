#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/world.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// The communicators of a rank's programs, one for each stream and kind of group whose ranks it has
/// operations with, and for messages one for each way between two stages: what one of them sends on
/// a stream the other receives on another. All are made up front: on some back ends that is a
/// collective of the whole job, so every rank makes the same ones in the same order, whichever
/// stage it runs. Who takes no part in one makes one of its own.
class CommunicatorTable {
 public:
  /// \param programs  of the job: all stages, all kinds of steps
  /// \param copies  ranks of tensor parallelism that have the same heads of keys and values
  CommunicatorTable(std::span<const StepProgram> programs, const Layout& layout, World& world,
                    std::int64_t copies = 1);
  /// The sender of a message is rank 0 and the receiver rank 1. \pre the operation is one of a
  /// program's and communicates in one collective
  Communicator& of(const StageProgram& program, const ProgramOp& op) const;

 private:
  struct Key {
    Stream stream = Stream::send;
    GroupKind group = GroupKind::pp;
    bool ends = false;        // CollectiveWork::ends
    bool table = false;       // of those, parts of a table: table_ranks()
    std::int64_t copies = 0;  // of tensor parallelism, so many neighbours; 0: all
    std::int32_t from = -1;   // of a message: the stage that sends it …
    std::int32_t to = -1;     // … and the one that it goes to
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  Key key_of(const StageProgram& program, const ProgramOp& op, const CollectiveWork& work) const;
  /// The ranks that share a communicator with `rank`, in its order.
  static std::vector<std::int64_t> ranks_of(const Key& key, const Layout& layout,
                                            std::int64_t rank);

  bool cuts_table_;
  std::int64_t copies_;
  std::map<Key, std::unique_ptr<Communicator>> communicators_;
};

}  // namespace shardwise::exec
