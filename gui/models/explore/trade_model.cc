#include "gui/models/explore/trade_model.h"

#include <algorithm>

#include "gui/models/explore/explore_model.h"

namespace shardwise::view {

void TradeDots::add(const LayoutRow& row) {
  gib.push_back(row.memory / 1_GiB);
  seconds.push_back(row.time.value());
}

void TradeCloud::include(double gib, double seconds) {
  fastest = std::min(fastest, seconds);
  slowest = std::max(slowest, seconds);
  smallest = std::min(smallest, gib);
  largest = std::max(largest, gib);
}

TradeCloud trade_cloud(const Answer& answer, std::span<const std::uint32_t> shown) {
  TradeCloud cloud;
  for (const std::uint32_t i : shown) {
    const LayoutRow& row = answer.rows[i];
    TradeDots& dots = row.fit == Fit::fits      ? cloud.fits
                      : row.fit == Fit::at_risk ? cloud.risk
                                                : cloud.over;
    dots.add(row);
    cloud.include(dots.gib.back(), dots.seconds.back());
    cloud.fit = cloud.fit || row.fit != Fit::does_not_fit;
  }
  for (const std::uint32_t i : front_rows(answer)) cloud.front.add(answer.rows[i]);
  return cloud;
}

}  // namespace shardwise::view
