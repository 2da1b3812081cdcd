#include "executor/engine/meetings.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {
namespace {

bool one_clock(ControlGroup& everyone) {
  const std::vector<std::string> clocks = all_gather_texts(everyone, this_clock());
  return std::ranges::all_of(
      clocks, [&](const std::string& clock) { return !clock.empty() && clock == clocks.front(); });
}

}  // namespace

// The steady clock counts from the machine's start, whose number this is. Source: Linux,
// Documentation/admin-guide/sysctl/kernel.rst, random.
std::string this_clock() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

void find_meetings(const StageProgram& program, const Layout& layout, ControlGroup& everyone,
                   std::span<OpSpan> spans) {
  if (!one_clock(everyone)) return;
  const std::size_t count = spans.size();
  std::vector<OpSpan> all(count * static_cast<std::size_t>(everyone.size()));
  everyone.all_gather_bytes(std::as_bytes(std::span<const OpSpan>(spans)),
                            std::as_writable_bytes(std::span(all)));
  std::map<GroupKind, std::vector<std::int64_t>> groups;
  for (std::size_t op = 0; op < count; ++op) {
    const ProgramOp& each = program.operations[op];
    const std::vector<CollectiveWork>& work =
        program.costs[static_cast<std::size_t>(each.cost)].collectives;
    if (work.empty()) continue;
    const auto [group, fresh] = groups.try_emplace(work.front().group);
    if (fresh) group->second = group_ranks(layout, work.front().group, everyone.rank());
    for (const std::int64_t rank : group->second) {
      const OpSpan& theirs = all[static_cast<std::size_t>(rank) * count + op];
      spans[op].met = std::max(spans[op].met, theirs.ready);
    }
    spans[op].met = std::min(spans[op].met, spans[op].end);
  }
}

}  // namespace shardwise::exec
