#include "executor/recorder/measured_trace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "executor/recorder/rank_record.h"
#include "tests/executor/recorder/hand_made_record.h"

namespace shardwise::exec::test {
namespace {

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

// Two ranks on one clock: an event begins when its rank is ready, says how long it waited for the
// other, and a wait on another stream is an arrow.
TEST(MeasuredTrace, HasTheRanksOnOneClock) {
  const StepRecord measured = record();
  std::vector<RankRecord> ranks(2);
  for (int r = 0; r < 2; ++r) {
    ranks[static_cast<std::size_t>(r)].rank = r;
    ranks[static_cast<std::size_t>(r)].steady = measured;
  }
  for (OpSpan& span : ranks[1].steady.spans) {
    for (std::int64_t* moment : {&span.begin, &span.ready, &span.met, &span.end}) *moment += kMs;
  }
  const nlohmann::json trace = nlohmann::json::parse(measured_trace(Plan{}, ranks));
  EXPECT_EQ(trace.at("otherData").at("origin"), "measured");
  std::map<int, std::vector<nlohmann::json>> events;
  int arrows = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") events[event.at("pid").get<int>()].push_back(event);
    if (event.at("ph") == "s") ++arrows;
  }
  ASSERT_EQ(events[0].size(), 6U);
  ASSERT_EQ(events[1].size(), 6U);
  EXPECT_DOUBLE_EQ(events[0][0].at("ts").get<double>(), 0);
  EXPECT_DOUBLE_EQ(events[1][0].at("ts").get<double>(), 1000);
  EXPECT_DOUBLE_EQ(events[0][0].at("dur").get<double>(), 7000);
  EXPECT_DOUBLE_EQ(events[0][0].at("args").at("waited_us").get<double>(), 3000);
  EXPECT_DOUBLE_EQ(events[0][4].at("ts").get<double>(), 22000);  // after the squares
  EXPECT_EQ(arrows, 2 * 4);
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
}  // namespace shardwise::exec::test
