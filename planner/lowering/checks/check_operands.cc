#include "planner/lowering/checks/check_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/lowering/checks/arena_layout.h"
#include "planner/lowering/checks/operand_microbatches.h"
#include "planner/lowering/checks/touched_bytes.h"
#include "planner/lowering/checks/written_bytes.h"

namespace shardwise {
namespace {

/// The micro-batches that all of some bytes hold.
Microbatches common(const std::vector<WrittenBytes::Part>& parts) {
  if (parts.empty()) return {};
  Microbatches all = parts.front().is.microbatches;
  for (const auto& [at, is] : parts) {
    all.first = std::max(all.first, is.microbatches.first);
    all.last = std::min(all.last, is.microbatches.last);
  }
  return all;
}

class OperandChecker {
 public:
  explicit OperandChecker(const StageProgram& stage)
      : stage_(stage), order_(stage), buffers_(stage.buffers.size()) {
    for (BufferId b = 0; b < buffers_.size(); ++b) {
      const ProgramBuffer& buffer = stage.buffers[b];
      const bool carried = buffer.resident && buffer.category != MemoryCategory::gradients;
      if (carried || buffer.outlives) buffers_[b].written.add({0, buffer.bytes}, {});
    }
    for (OpId op = 0; op < stage.operations.size(); ++op) {
      const ProgramOp& each = stage.operations[op];
      for (const BufferId b : stage.of(each.allocates)) buffers_[b].made = op;
      for (const BufferId b : stage.of(each.frees)) buffers_[b].freed = op;
      num_microbatches_ = std::max(num_microbatches_, each.microbatch + 1);
    }
  }

  std::vector<std::string> run() {
    for (OpId op = 0; op < stage_.operations.size(); ++op) {
      const ProgramOp& each = stage_.operations[op];
      OperandMicrobatches microbatches(each, num_microbatches_);
      for (const Operand& operand : stage_.operands_of(each)) check(op, operand, microbatches);
    }
    return std::move(problems_);
  }

 private:
  struct Buffer {
    OpId made = kNone;
    OpId freed = kNone;
    WrittenBytes written;
    TouchedBytes touches;
  };

  void problem(OpId op, const Operand& operand, const std::string& what) {
    constexpr std::size_t kMost = 20;
    if (problems_.size() >= kMost) return;
    problems_.push_back(fmt::format("stage {}: {} has {} as {} in buffer {}, {}", stage_.stage,
                                    name_of(op), shardwise::name_of(operand.part),
                                    shardwise::name_of(operand.access), operand.buffer, what));
  }
  std::string name_of(OpId op) const { return shardwise::name_of(stage_, stage_.operations[op]); }

  void check(OpId op, const Operand& operand, OperandMicrobatches& microbatches) {
    if (operand.buffer >= buffers_.size()) return problem(op, operand, "which there is not");
    const ByteRange bytes = {operand.begin_byte(), operand.end_byte()};
    const std::int64_t all = stage_.buffers[operand.buffer].bytes;
    if (operand.first < 0 || operand.count < 0 || bytes.end > all) {
      return problem(op, operand, fmt::format("bytes {} to {} of {}", bytes.begin, bytes.end, all));
    }
    lives(op, operand);
    ordered(op, operand, bytes);
    WrittenBytes& written = buffers_[operand.buffer].written;
    if (operand.access == Access::workspace) return written.remove(bytes);
    Content content;
    content.unit = operand.unit;
    if (is_of_one_layer(operand.part)) content.layer = stage_.operations[op].layer;
    if (operand.reads()) {
      const std::vector<WrittenBytes::Part> there = written.in(bytes);
      if (!written.has(bytes, content.unit, content.layer)) {
        problem(op, operand, "which nobody wrote");
      } else if (const auto other = std::ranges::find_if(there,
                                                         [&](const auto& part) {
                                                           return !microbatches.may_read(
                                                               operand, part.is.microbatches);
                                                         });
                 other != there.end()) {
        problem(op, operand,
                fmt::format("which holds {}, not {}", text_of(other->is.microbatches),
                            microbatches.wanted(operand)));
      }
      content.microbatches = common(there);
    }
    const bool told = content.microbatches.none();
    content.microbatches = microbatches.after(operand, content.microbatches);
    // What the host wrote for a micro-batch is known as its from the first who reads it on.
    if (operand.writes() || (told && !content.microbatches.none())) written.add(bytes, content);
  }

  void lives(OpId op, const Operand& operand) {
    const Buffer& buffer = buffers_[operand.buffer];
    const ProgramBuffer& spec = stage_.buffers[operand.buffer];
    if (spec.resident) return;
    if (buffer.made != op && (buffer.made == kNone || !order_.before(buffer.made, op))) {
      problem(op, operand, "which may not be allocated yet");
    }
    if (spec.outlives || buffer.freed == op) return;
    if (buffer.freed == kNone || !order_.before(op, buffer.freed)) {
      problem(op, operand,
              fmt::format("which {} may have freed",
                          buffer.freed == kNone ? "nobody" : name_of(buffer.freed)));
    }
  }

  void ordered(OpId op, const Operand& operand, const ByteRange& bytes) {
    const TouchedBytes::Race race =
        buffers_[operand.buffer].touches.touch(order_, op, bytes, operand.writes());
    if (race.op == kNone) return;
    problem(op, operand,
            fmt::format("which {} may {} at the same time", name_of(race.op),
                        race.writes ? "write" : "read"));
  }

  const StageProgram& stage_;
  DependencyOrder order_;
  std::vector<Buffer> buffers_;
  std::int32_t num_microbatches_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_operands(const StageProgram& stage) {
  return OperandChecker(stage).run();
}

}  // namespace shardwise
