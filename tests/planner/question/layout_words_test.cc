#include "planner/question/layout_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(OtherSettings, NameWhatMostLayoutsHaveNot) {
  Layout layout;
  layout.tp = 4;
  layout.pp = 2;
  layout.zero_stage = 3;
  layout.sequence_parallel = true;
  EXPECT_EQ(other_settings(layout), "");
  layout.recompute = Recompute::full;
  layout.recompute_interval = 2;
  layout.sequence_parallel = false;
  layout.offload_optimizer = true;
  EXPECT_EQ(other_settings(layout),
            "full recompute of every 2, no sequence parallel, optimizer on host");
}

// An order is told by the axes that have more than one rank.
TEST(OtherSettings, TellTheOrderOfAxesInUse) {
  Layout layout;
  layout.tp = 2;
  layout.sequence_parallel = true;
  layout.dp_shard = 4;
  layout.dp_replicate = 2;
  std::swap(layout.order.front(), layout.order[3]);
  EXPECT_EQ(other_settings(layout), "dp-tp-replicas");
}

TEST(DifferingFields, AreThoseOfTheSecondLayout) {
  Layout from;
  Layout to = from;
  EXPECT_TRUE(differing_fields(from, to).empty());
  to.tp = 8;
  to.recompute = Recompute::selective;
  EXPECT_THAT(differing_fields(from, to),
              ElementsAre(Pair("tp", "8"), Pair("recompute", "selective")));
  EXPECT_EQ(in_words(differing_fields(from, to)), "tp 8, recompute selective");
  EXPECT_EQ(in_words(differing_fields(to, from)), "tp 1, recompute none");
}

}  // namespace
}  // namespace shardwise
