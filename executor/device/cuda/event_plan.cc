#include "executor/device/cuda/event_plan.h"

#include <algorithm>
#include <array>
#include <functional>

namespace shardwise::exec {
namespace {

/// Of each stream the operations that are over: the first so many of the program's, counted on.
using Over = std::array<std::uint32_t, kStreams>;

std::size_t stream_number(const StageProgram& program, std::uint32_t op) {
  return static_cast<std::size_t>(program.operations[op].stream);
}

/// Appends to `kept` those of `waits` that are not over when the stream comes to them, the latest
/// first: what an earlier one says, a later one may say too, never the other way round.
void keep(const StageProgram& program, std::vector<std::uint32_t> waits,
          const std::vector<Over>& over_after, Over& over, std::vector<std::uint32_t>& kept) {
  std::ranges::sort(waits, std::greater<>());
  for (const std::uint32_t wait : waits) {
    if (over[stream_number(program, wait)] > wait) continue;
    kept.push_back(wait);
    for (std::size_t s = 0; s < kStreams; ++s) over[s] = std::max(over[s], over_after[wait][s]);
  }
}

}  // namespace

EventPlan event_plan(const StageProgram& program) {
  EventPlan plan;
  const auto count = static_cast<std::uint32_t>(program.operations.size());
  plan.ops.resize(count);
  std::vector<Over> over_after(count);
  std::array<std::vector<std::uint32_t>, kStreams> last;  // of each stream, at most one
  for (std::uint32_t op = 0; op < count; ++op) {
    const std::size_t stream = stream_number(program, op);
    Over over = last[stream].empty() ? Over{} : over_after[last[stream].front()];
    const auto waits = program.of(program.operations[op].waits);
    keep(program, {waits.begin(), waits.end()}, over_after, over, plan.ops[op].waits);
    plan.ops[op].after_begin = last[stream].empty() && plan.ops[op].waits.empty() &&
                               program.operations[op].stream != Stream::compute;
    over[stream] = op + 1;
    over_after[op] = over;
    last[stream] = {op};
  }
  const auto compute = static_cast<std::size_t>(Stream::compute);
  Over over = last[compute].empty() ? Over{} : over_after[last[compute].front()];
  std::vector<std::uint32_t> ends;
  for (const std::vector<std::uint32_t>& end : last)
    ends.insert(ends.end(), end.begin(), end.end());
  keep(program, ends, over_after, over, plan.joins);
  for (const EventPlan::Op& op : plan.ops) {
    for (const std::uint32_t wait : op.waits) plan.ops[wait].records = true;
  }
  for (const std::uint32_t join : plan.joins) plan.ops[join].records = true;
  return plan;
}

}  // namespace shardwise::exec
