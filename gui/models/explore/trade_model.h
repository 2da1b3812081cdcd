#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gui/models/explore/layout_row.h"

namespace shardwise::view {

/// Memory of the fullest GPU in GiB, and seconds by the step-time model.
struct TradeDots {
  std::vector<double> gib;
  std::vector<double> seconds;
  void add(const LayoutRow& row);
};

/// Rows as dots of memory and time, and where they end.
struct TradeCloud {
  TradeDots fits;
  TradeDots risk;
  TradeDots over;
  TradeDots front;  // of the answer: by memory, times falling
  double fastest = std::numeric_limits<double>::infinity();
  double slowest = 0;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  bool fit = false;  // some of them do

  void include(double gib, double seconds);
};

/// \param shown  rows of the answer
TradeCloud trade_cloud(const Answer& answer, std::span<const std::uint32_t> shown);

}  // namespace shardwise::view
