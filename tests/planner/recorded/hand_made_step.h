#pragma once

#include <cstdint>
#include <vector>

#include "planner/recorded/recorded_step.h"

namespace shardwise::test {

inline double ms(Seconds time) { return time.value() * 1e3; }

/// A step of one rank, written down by hand; times are milliseconds.
class Step {
 public:
  Step& op(OpRole role, Stream stream, const RecordedSpan& span,
           const std::vector<std::uint32_t>& waits) {
    ProgramOp made;
    made.role = role;
    made.stream = stream;
    made.cost = static_cast<std::int32_t>(program_.costs.size());
    program_.costs.emplace_back();
    made.waits.begin = static_cast<std::uint32_t>(program_.indices.size());
    program_.indices.insert(program_.indices.end(), waits.begin(), waits.end());
    made.waits.end = static_cast<std::uint32_t>(program_.indices.size());
    program_.operations.push_back(made);
    spans_.push_back({span.begin * 1e-3, span.ready * 1e-3, span.met * 1e-3, span.end * 1e-3});
    return *this;
  }
  /// The operation before communicates in a group of this kind.
  Step& in(GroupKind group) {
    CollectiveWork work;
    work.group = group;
    program_.costs.back().collectives.push_back(work);
    return *this;
  }
  RecordedStep of(double length) const { return {&program_, spans_, length * 1e-3, {}, {}}; }

 private:
  StageProgram program_;
  std::vector<RecordedSpan> spans_;
};

// A gather that waits 3 ms for another rank and moves 4; one beside the forward pass; squares of
// the norm, 2 ms, between the last pass and the optimizer.
inline Step example() {
  return Step()
      .op(OpRole::gather, Stream::all_gather, {0, 0, 3, 7}, {})
      .op(OpRole::gather, Stream::all_gather, {7, 7, 9, 12}, {})
      .op(OpRole::forward, Stream::compute, {7, 7, 7, 10}, {0})
      .op(OpRole::backward, Stream::compute, {12, 12, 12, 20}, {1})
      .op(OpRole::gradient_norm, Stream::outer_reduce, {20, 22, 23, 24}, {3})
      .op(OpRole::optimizer, Stream::compute, {24, 24, 24, 29}, {4});
}

}  // namespace shardwise::test
