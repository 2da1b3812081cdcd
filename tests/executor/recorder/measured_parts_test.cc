#include "executor/recorder/measured_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kMs = 1'000'000;

/// A step of one rank, written down by hand; times are milliseconds.
class Step {
 public:
  Step& op(OpRole role, Stream stream, const OpSpan& span,
           const std::vector<std::uint32_t>& waits) {
    ProgramOp made;
    made.role = role;
    made.stream = stream;
    made.waits.begin = static_cast<std::uint32_t>(record_.program.indices.size());
    for (const std::uint32_t wait : waits) record_.program.indices.push_back(wait);
    made.waits.end = static_cast<std::uint32_t>(record_.program.indices.size());
    record_.program.operations.push_back(made);
    record_.spans.push_back({span.begin * kMs, span.ready * kMs, span.met * kMs, span.end * kMs});
    return *this;
  }
  StepRecord record(double ms) {
    record_.seconds = ms * 1e-3;
    return record_;
  }

 private:
  StepRecord record_;
};

double ms(Seconds time) { return time.value() * 1e3; }

// A gather that waits 3 ms for another rank and moves 4; one beside the forward pass; squares of
// the norm, 2 ms, between the last pass and the optimizer.
StepRecord record() {
  return Step()
      .op(OpRole::gather, Stream::all_gather, {0, 0, 3, 7}, {})
      .op(OpRole::gather, Stream::all_gather, {7, 7, 9, 12}, {})
      .op(OpRole::forward, Stream::compute, {7, 7, 7, 10}, {0})
      .op(OpRole::backward, Stream::compute, {12, 12, 12, 20}, {1})
      .op(OpRole::gradient_norm, Stream::outer_reduce, {20, 22, 23, 24}, {3})
      .op(OpRole::optimizer, Stream::compute, {24, 24, 24, 29}, {4})
      .record(30);
}

TEST(MeasuredParts, SaysWhatWasMovedAndWhatWasWaitedForOthers) {
  const TimeParts parts = measured_parts(record());
  EXPECT_NEAR(ms(parts.forward), 3, 1e-9);
  EXPECT_NEAR(ms(parts.backward), 8, 1e-9);
  EXPECT_NEAR(ms(parts.straggler), 3 + 1, 1e-9);
  EXPECT_NEAR(ms(parts.dp_exposed), 4 + 2 + 1, 1e-9);
  EXPECT_NEAR(ms(parts.optimizer), 2 + 5, 1e-9);
  EXPECT_NEAR(ms(parts.input_exposed), 1, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 30, 1e-9);
}

TEST(MeasuredParts, CountsWhatFollowsTheLastKernel) {
  const TimeParts parts =
      measured_parts(Step()
                         .op(OpRole::optimizer, Stream::compute, {0, 0, 0, 5}, {})
                         .op(OpRole::gather_updated, Stream::all_gather, {4, 4, 7, 9}, {})
                         .record(9));
  EXPECT_NEAR(ms(parts.straggler), 2, 1e-9);
  EXPECT_NEAR(ms(parts.dp_exposed), 2, 1e-9);
  EXPECT_NEAR(ms(parts.total()), 9, 1e-9);
}

TEST(ExposedNs, BeginsWhenTheLastOfTheGroupHasCome) {
  const std::vector<std::int64_t> expected = {4 * kMs, 2 * kMs, 0, 0, 1 * kMs, 0};
  EXPECT_EQ(exposed_ns(record()), expected);
}

TEST(MeasuredMemory, CountsWhatEndsBeforeWhatBeginsAtThatMoment) {
  StepRecord step = Step()
                        .op(OpRole::forward, Stream::compute, {0, 0, 0, 5}, {})
                        .op(OpRole::backward, Stream::compute, {5, 5, 5, 9}, {})
                        .record(9);
  MemoryItem of_backward;
  of_backward.life = {100, 1, 1};
  MemoryItem of_forward;
  of_forward.life = {70, 0, 0};
  step.items = {of_backward, of_forward};
  EXPECT_EQ(measured_memory(step).passes[MemoryCategory::working], 100);
}

}  // namespace
}  // namespace shardwise::exec
