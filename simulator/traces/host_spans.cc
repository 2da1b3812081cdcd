#include "simulator/traces/host_spans.h"

#include <algorithm>

namespace shardwise::sim {

using Mark = ProfilerRecord::Mark;

HostSpans::HostSpans(const ProfilerRecord& record, ProfilerRecord::MarkKind kind) {
  for (const Mark& mark : record.marks) {
    if (mark.kind == kind) threads_[mark.thread].push_back(mark);
  }
  for (auto& [thread, marks] : threads_) {
    std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::size_t kept = 0;
    for (const Mark& mark : marks) {
      if (kept == 0 || mark.end > marks[kept - 1].end) marks[kept++] = mark;
    }
    marks.resize(kept);
  }
}

const Mark* HostSpans::at(std::int64_t thread, std::int64_t moment) const {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return nullptr;
  const std::vector<Mark>& marks = found->second;
  auto after =
      std::upper_bound(marks.begin(), marks.end(), moment,
                       [](std::int64_t value, const Mark& mark) { return value < mark.start; });
  if (after == marks.begin()) return nullptr;
  --after;
  return moment < after->end ? &*after : nullptr;
}

std::optional<std::int64_t> HostSpans::last_end(std::int64_t from, std::int64_t to) const {
  std::optional<std::int64_t> last;
  for (const auto& [thread, marks] : threads_) {
    auto after =
        std::upper_bound(marks.begin(), marks.end(), to,
                         [](std::int64_t value, const Mark& mark) { return value < mark.end; });
    if (after == marks.begin()) continue;
    --after;
    if (after->end > from) last = std::max(last.value_or(after->end), after->end);
  }
  return last;
}

}  // namespace shardwise::sim
