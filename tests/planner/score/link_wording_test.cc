#include "planner/score/rows/link_wording.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(StatedLink, ReadsARateForEachGpu) {
  const auto link = stated_link("RDMA 400 Gb/s per GPU");
  ASSERT_TRUE(link);
  EXPECT_EQ(link->gigabits_per_s, 400);
  EXPECT_EQ(link->links_per_node, 0);
  EXPECT_FALSE(link->shared_total);
}

TEST(StatedLink, ReadsLinksOfANodeBeforeOrAfterTheRate) {
  for (const char* wording : {"8x HDR200 IB per node (a site)", "IB HDR200 x8 per node",
                              "8x200 Gb/s RDMA per node", "8x 200Gb RoCE"}) {
    const auto link = stated_link(wording);
    ASSERT_TRUE(link) << wording;
    EXPECT_EQ(link->gigabits_per_s, 200) << wording;
    EXPECT_EQ(link->links_per_node, 8) << wording;
    EXPECT_FALSE(link->shared_total) << wording;
  }
}

TEST(StatedLink, ReadsTheTotalOfANode) {
  const auto link = stated_link("1600 Gb/s per node RoCE");
  ASSERT_TRUE(link);
  EXPECT_EQ(link->gigabits_per_s, 1600);
  EXPECT_TRUE(link->shared_total);
  EXPECT_TRUE(stated_link("3200 Gb/s EFA")->shared_total);
}

TEST(StatedLink, TakesBytesAndGenerationNames) {
  EXPECT_EQ(stated_link("50 GB/s per GPU")->gigabits_per_s, 400);
  EXPECT_EQ(stated_link("IB NDR400 (not stated)")->gigabits_per_s, 400);
}

TEST(StatedLink, SaysNothingWithoutARate) {
  EXPECT_FALSE(stated_link(""));
  EXPECT_FALSE(stated_link("multi-node (a domain of 72 presumably)"));
  EXPECT_FALSE(stated_link("4x Omni-Path"));
}

}  // namespace
}  // namespace shardwise
