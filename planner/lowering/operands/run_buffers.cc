#include "planner/lowering/operands/run_buffers.h"

#include <algorithm>
#include <array>

namespace shardwise {
namespace {

/// The lists of one operation.
struct Touched {
  std::vector<std::uint32_t> allocates;
  std::vector<std::uint32_t> uses;
  std::vector<std::uint32_t> frees;
};

}  // namespace

RunBuffers::RunBuffers(const StageProgram& planned)
    : planned_(planned),
      of_plan_(planned.buffers.size(), kNone),
      plan_touches_(planned.buffers.size()) {
  for (OpId op = 0; op < planned.operations.size(); ++op) {
    const ProgramOp& each = planned.operations[op];
    for (const IndexRange range : {each.allocates, each.uses, each.frees}) {
      for (const BufferId b : planned.of(range)) plan_touches_[b].push_back(op);
    }
  }
}

BufferId RunBuffers::make(MemoryCategory category, std::int64_t bytes, std::int32_t layer,
                          std::int32_t microbatch) {
  if (bytes <= 0) return kNone;
  Life life;
  life.buffer = {category, bytes, layer, microbatch, false, false};
  lives_.push_back(std::move(life));
  return static_cast<BufferId>(lives_.size()) - 1;
}

BufferId RunBuffers::resident(MemoryCategory category, std::int64_t bytes, OpId made_by) {
  const BufferId made = make(category, bytes);
  if (made == kNone) return kNone;
  Life& life = lives_[made];
  life.made_by = made_by;
  (made_by == kNone ? life.buffer.resident : life.buffer.outlives) = true;
  return made;
}

BufferId RunBuffers::of_plan(BufferId buffer) {
  BufferId& here = of_plan_[buffer];
  if (here != kNone) return here;
  const ProgramBuffer& spec = planned_.buffers[buffer];
  here = make(spec.category, spec.bytes, spec.layer, spec.microbatch);
  lives_[here].touches = plan_touches_[buffer];
  return here;
}

void RunBuffers::touch(BufferId buffer, OpId op) {
  if (buffer != kNone) lives_[buffer].touches.push_back(op);
}

void RunBuffers::write(StageProgram& program) const {
  std::vector<Touched> touched(program.operations.size());
  program.buffers.clear();
  for (const Life& life : lives_) {
    const auto b = static_cast<BufferId>(program.buffers.size());
    program.buffers.push_back(life.buffer);
    if (life.buffer.resident) continue;
    if (life.buffer.outlives) {
      touched[life.made_by].allocates.push_back(b);
      continue;
    }
    std::vector<OpId> ops = life.touches;
    std::ranges::sort(ops);
    ops.erase(std::unique(ops.begin(), ops.end()), ops.end());  // clang 14 has no ranges::unique
    touched[ops.front()].allocates.push_back(b);
    touched[ops.back()].frees.push_back(b);
    for (const OpId op : ops) {
      if (op != ops.front() && op != ops.back()) touched[op].uses.push_back(b);
    }
  }
  std::vector<std::uint32_t> indices;
  const auto list = [&](std::span<const std::uint32_t> each) -> IndexRange {
    const auto begin = static_cast<std::uint32_t>(indices.size());
    indices.insert(indices.end(), each.begin(), each.end());
    return {begin, static_cast<std::uint32_t>(indices.size())};
  };
  for (OpId i = 0; i < program.operations.size(); ++i) {
    ProgramOp& op = program.operations[i];
    op.waits = list(program.of(op.waits));
    op.allocates = list(touched[i].allocates);
    op.uses = list(touched[i].uses);
    op.frees = list(touched[i].frees);
  }
  program.indices = std::move(indices);
}

}  // namespace shardwise
