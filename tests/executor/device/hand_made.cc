#include "tests/executor/device/hand_made.h"

#include <algorithm>

namespace shardwise::exec::test {

StageProgram made_program(const std::vector<MadeOp>& ops) {
  StageProgram program;
  program.costs.resize(1);
  for (const MadeOp& made : ops) {
    ProgramOp op;
    op.layer = static_cast<std::int32_t>(program.operations.size());
    op.stream = made.stream;
    op.waits.begin = static_cast<std::uint32_t>(program.indices.size());
    program.indices.insert(program.indices.end(), made.waits.begin(), made.waits.end());
    op.waits.end = static_cast<std::uint32_t>(program.indices.size());
    program.operations.push_back(op);
  }
  return program;
}

StageProgram random_program(std::mt19937& random, std::uint32_t count, int streams) {
  const auto below = [&](std::uint32_t end) {
    return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random);
  };
  std::vector<MadeOp> ops(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    ops[i].stream = static_cast<Stream>(below(static_cast<std::uint32_t>(streams)));
    if (i == 0) continue;
    ops[i].waits.resize(below(4));
    for (std::uint32_t& wait : ops[i].waits) wait = below(i);
    std::ranges::sort(ops[i].waits);
    // clang 14 does not take libstdc++'s std::ranges::unique.
    ops[i].waits.erase(std::unique(ops[i].waits.begin(), ops[i].waits.end()), ops[i].waits.end());
  }
  return made_program(ops);
}

std::vector<std::uint32_t> before(const StageProgram& program, std::uint32_t op) {
  const ProgramOp& each = program.operations[op];
  const auto waits = program.of(each.waits);
  std::vector<std::uint32_t> all(waits.begin(), waits.end());
  for (std::uint32_t i = op; i-- > 0;) {
    if (program.operations[i].stream != each.stream) continue;
    all.push_back(i);
    break;
  }
  return all;
}

}  // namespace shardwise::exec::test
