#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "simulator/traces/profiler_record.h"

namespace shardwise::sim {

/// Spans of the host of one kind, by thread. A thread's spans nest or follow one another; of spans
/// inside one another the outer one is kept.
class HostSpans {
 public:
  HostSpans(const ProfilerRecord& record, ProfilerRecord::MarkKind kind);

  bool empty() const { return threads_.empty(); }
  bool has_thread(std::int64_t thread) const { return threads_.contains(thread); }
  /// The span of `thread` that holds the moment, or nullptr.
  const ProfilerRecord::Mark* at(std::int64_t thread, std::int64_t moment) const;
  /// End of the last span that ends between two moments; nothing when none does.
  std::optional<std::int64_t> last_end(std::int64_t from, std::int64_t to) const;

 private:
  std::map<std::int64_t, std::vector<ProfilerRecord::Mark>> threads_;  // sorted
};

}  // namespace shardwise::sim
