#pragma once

#include <cstdint>
#include <vector>

#include "executor/recorder/rank_record.h"

namespace shardwise::exec::test {

inline constexpr std::int64_t kMs = 1'000'000;

/// A step of one rank, written down by hand; times are milliseconds.
class Step {
 public:
  Step& op(OpRole role, Stream stream, const OpSpan& span,
           const std::vector<std::uint32_t>& waits) {
    ProgramOp made;
    made.role = role;
    made.stream = stream;
    made.cost = static_cast<std::int32_t>(record_.program.costs.size());
    record_.program.costs.emplace_back();
    made.waits.begin = static_cast<std::uint32_t>(record_.program.indices.size());
    for (const std::uint32_t wait : waits) record_.program.indices.push_back(wait);
    made.waits.end = static_cast<std::uint32_t>(record_.program.indices.size());
    record_.program.operations.push_back(made);
    record_.spans.push_back({span.begin * kMs, span.ready * kMs, span.met * kMs, span.end * kMs});
    return *this;
  }
  /// The operation before communicates in a group of this kind.
  Step& in(GroupKind group) {
    CollectiveWork work;
    work.group = group;
    record_.program.costs.back().collectives.push_back(work);
    return *this;
  }
  /// Memory from the begin of an operation to the end of another; kNone: all the time.
  Step& item(MemoryCategory category, std::int64_t bytes, OpId first = kNone, OpId last = kNone) {
    record_.items.push_back({category, {bytes, first, last}, kNone});
    record_.program.buffers.emplace_back();
    return *this;
  }
  StepRecord record(double ms) {
    record_.seconds = ms * 1e-3;
    return record_;
  }

 private:
  StepRecord record_;
};

}  // namespace shardwise::exec::test
