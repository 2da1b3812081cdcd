#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/stage/stage_builder.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// The buffers that a rank's operations touch: each lives from the first operation that does to the
/// last.
class RunBuffers {
 public:
  /// \param planned  the program with the buffers of the ledger; must outlive this
  explicit RunBuffers(const StageProgram& planned);

  /// kNone for no bytes.
  BufferId make(MemoryCategory category, std::int64_t bytes, std::int32_t layer = -1,
                std::int32_t microbatch = -1);
  /// One that is there all the time. \param made_by  or from this operation of the first step on
  BufferId resident(MemoryCategory category, std::int64_t bytes, OpId made_by = kNone);
  /// A buffer of `planned`, as large as there, from who allocates it to who frees it.
  BufferId of_plan(BufferId buffer);

  void touch(BufferId buffer, OpId op);
  /// Gives `program` these buffers in place of its own. \pre its operations are those of `planned`
  void write(StageProgram& program) const;

 private:
  struct Life {
    ProgramBuffer buffer;
    std::vector<OpId> touches;
    OpId made_by = kNone;
  };

  const StageProgram& planned_;
  std::vector<BufferId> of_plan_;                // by buffer of the plan
  std::vector<std::vector<OpId>> plan_touches_;  // the same
  std::vector<Life> lives_;
};

}  // namespace shardwise
