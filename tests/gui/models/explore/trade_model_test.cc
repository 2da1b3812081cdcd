#include "gui/models/explore/trade_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace shardwise::view {
namespace {

LayoutRow row(Fit fit, Bytes memory, Seconds time, bool front = false) {
  LayoutRow made;
  made.fit = fit;
  made.memory = memory;
  made.time = time;
  made.front = front;
  return made;
}

TEST(TradeCloud, HasADotForEachRowShownAndTheWholeFront) {
  Answer answer;
  answer.rows = {row(Fit::fits, 60_GiB, Seconds(2), true),
                 row(Fit::does_not_fit, 90_GiB, Seconds(1)),
                 row(Fit::fits, 40_GiB, Seconds(3), true), row(Fit::at_risk, 78_GiB, Seconds(5))};
  const std::array<std::uint32_t, 3> shown = {3, 1, 0};
  const TradeCloud cloud = trade_cloud(answer, shown);
  EXPECT_EQ(cloud.fits.gib, std::vector<double>({60}));
  EXPECT_EQ(cloud.risk.seconds, std::vector<double>({5}));
  EXPECT_EQ(cloud.over.gib, std::vector<double>({90}));
  EXPECT_EQ(cloud.front.gib, std::vector<double>({40, 60}));
  EXPECT_EQ(cloud.front.seconds, std::vector<double>({3, 2}));
  EXPECT_EQ(cloud.fastest, 1);
  EXPECT_EQ(cloud.slowest, 5);
  EXPECT_EQ(cloud.smallest, 60);
  EXPECT_EQ(cloud.largest, 90);
  EXPECT_TRUE(cloud.fit);
  const std::array<std::uint32_t, 1> one = {1};
  EXPECT_FALSE(trade_cloud(answer, one).fit);
}

}  // namespace
}  // namespace shardwise::view
