#include "planner/recorded/critical_path.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tests/planner/recorded/hand_made_step.h"

namespace shardwise::test {
namespace {

double path_of(const std::vector<RecordedStep>& ranks) { return ms(critical_path(ranks)); }

/// Which operations of the step take part in which rendezvous.
RecordedStep with(RecordedStep step, std::vector<std::uint32_t> rendezvous) {
  step.rendezvous = std::move(rendezvous);
  return step;
}

// The chain that ends the step is gather, gather, backward, norm, optimizer: what they ran without
// waiting, 4 + 3 + 8 + (2 + 1) + 5 ms. The forward pass ends before the second gather and is not
// on it.
TEST(CriticalPath, IsTheChainThatEndsTheStepWithoutWaiting) {
  const Step step = example();
  EXPECT_NEAR(path_of({step.of(30)}), 4 + 3 + 8 + 3 + 5, 1e-9);
  EXPECT_EQ(critical_path({}), Seconds(0));
  EXPECT_EQ(path_of({Step().of(1)}), 0);
}

// Rank 1 computes 9 ms before a reduction for which rank 0 is ready after 2. Its bytes move 3 ms,
// then rank 0 updates for 4 ms and rank 1 for 1.
Step early() {
  return Step()
      .op(OpRole::backward, Stream::compute, {0, 0, 0, 2}, {})
      .op(OpRole::reduce, Stream::reduce_scatter, {2, 2, 9, 12}, {0})
      .op(OpRole::optimizer, Stream::compute, {12, 12, 12, 16}, {1});
}
Step late() {
  return Step()
      .op(OpRole::backward, Stream::compute, {0, 0, 0, 9}, {})
      .op(OpRole::reduce, Stream::reduce_scatter, {9, 9, 9, 12}, {0})
      .op(OpRole::optimizer, Stream::compute, {12, 12, 12, 13}, {1});
}

TEST(CriticalPath, CrossesToTheRankThatWasReadyLast) {
  const Step first = early();
  const Step second = late();
  const std::vector<std::uint32_t> reduction = {kNoRendezvous, 0, kNoRendezvous};
  const RecordedStep a = with(first.of(16), reduction);
  const RecordedStep b = with(second.of(16), reduction);
  EXPECT_NEAR(path_of({a, b}), 4 + 3 + 9, 1e-9);
  EXPECT_NEAR(path_of({b, a}), 4 + 3 + 9, 1e-9);
  // Alone rank 0 knows of its own 2 ms, and of who is waited for nothing.
  EXPECT_NEAR(path_of({first.of(16)}), 4 + 3 + 2, 1e-9);
  // Ranks of another group do not hold it up.
  EXPECT_NEAR(path_of({a, with(second.of(16), {kNoRendezvous, 1, kNoRendezvous})}), 4 + 3 + 2,
              1e-9);
}

// Stage 1 receives what stage 0 sends, at different places of their programs.
TEST(CriticalPath, FollowsAMessageToItsSender) {
  const Step sender = Step()
                          .op(OpRole::forward, Stream::compute, {0, 0, 0, 5}, {})
                          .op(OpRole::send_forward, Stream::send, {5, 5, 5, 6}, {0});
  const Step receiver = Step()
                            .op(OpRole::receive_forward, Stream::receive, {0, 0, 5, 6}, {})
                            .op(OpRole::forward, Stream::compute, {6, 6, 6, 8}, {0});
  EXPECT_NEAR(
      path_of({with(sender.of(8), {kNoRendezvous, 0}), with(receiver.of(8), {0, kNoRendezvous})}),
      2 + 1 + 5, 1e-9);
}

// The second pass waits for nothing on the device, but its host waited for the copy.
TEST(CriticalPath, FollowsTheOperationThatTheHostWaitedFor) {
  const Step step = Step()
                        .op(OpRole::offload, Stream::host_copy, {0, 0, 0, 4}, {})
                        .op(OpRole::forward, Stream::compute, {4, 4, 4, 7}, {});
  const std::vector<std::uint32_t> issued_after = {kNoOperation, 0};
  RecordedStep waited = step.of(7);
  waited.issued_after = issued_after;
  EXPECT_NEAR(path_of({step.of(7)}), 3, 1e-9);
  EXPECT_NEAR(path_of({waited}), 3 + 4, 1e-9);
}

TEST(CriticalChain, NamesTheOperationsInTime) {
  const Step first = early();
  const Step second = late();
  const std::vector<std::uint32_t> reduction = {kNoRendezvous, 0, kNoRendezvous};
  const RecordedStep a = with(first.of(16), reduction);
  const RecordedStep b = with(second.of(16), reduction);
  const std::vector<RecordedStep> ranks = {a, b};
  // Rank 1 computes and reduces, rank 0 updates.
  const std::vector<StepPlace> expected = {{1, 0}, {1, 1}, {0, 2}};
  EXPECT_EQ(critical_chain(ranks), expected);
}

TEST(WaitedFor, IsTheLastAtTheRendezvousAndThenWhatTheRankDidBefore) {
  const Step first = early();
  const Step second = late();
  const std::vector<std::uint32_t> reduction = {kNoRendezvous, 0, kNoRendezvous};
  const std::vector<RecordedStep> ranks = {with(first.of(16), reduction),
                                           with(second.of(16), reduction)};
  EXPECT_EQ(waited_for(ranks, {0, 1}), (std::vector<StepPlace>{{1, 1}, {0, 0}}));
  EXPECT_EQ(waited_for(ranks, {1, 1}), (std::vector<StepPlace>{{1, 0}}));
  EXPECT_EQ(waited_for(ranks, {0, 2}), (std::vector<StepPlace>{{0, 1}, {0, 0}}));
  EXPECT_TRUE(waited_for(ranks, {0, 0}).empty());
}

}  // namespace
}  // namespace shardwise::test
