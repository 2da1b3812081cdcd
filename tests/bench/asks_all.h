#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <stop_token>

#include "planner/search/pricing/evaluator.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Wall and CPU seconds since it was made, all threads of this process together.
class Watch {
 public:
  double wall() const { return std::chrono::duration<double>(Clock::now() - wall_).count(); }
  double cpu() const { return static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point wall_ = Clock::now();
  std::clock_t cpu_ = std::clock();
};

struct Rate {
  std::int64_t layouts = 0;
  double cpu = 0;
  double wall = 0;
  double per_second() const { return static_cast<double>(layouts) / cpu; }
};

/// Asks for the bytes of every layout and for its step time, or for the bytes alone, until an item
/// has taken its share of processor time.
class AsksAll final : public LayoutVisitor {
 public:
  /// \param share  seconds of an item
  explicit AsksAll(double share, bool times = true) : share_(share), times_(times) {}

  /// Prices layouts of an item, from its first one on.
  void run(Evaluator& evaluator, const WorkItem& item) {
    stop_ = {};
    start_ = watch_.cpu();
    last_ = start_;
    evaluator.run(item, *this, stop_.get_token());
    rate.cpu += last_ - start_;
  }

  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t orders) override {
    benchmark::DoNotOptimize(price.point);
    if (watch_.cpu() - start_ > share_) stop_.request_stop();
    if (times_) return Seconds(std::numeric_limits<double>::infinity());
    priced(orders);
    return Seconds(-1.0);
  }
  void time(const Layout&, const MemoryPrice& price, Seconds step_time, std::int64_t) override {
    benchmark::DoNotOptimize(price.point);
    benchmark::DoNotOptimize(step_time);
    priced(1);
  }
  Rate rate;

 private:
  void priced(std::int64_t layouts) {
    rate.layouts += layouts;
    last_ = watch_.cpu();
  }

  double share_;
  bool times_;
  std::stop_source stop_;
  Watch watch_;
  double start_ = 0;
  double last_ = 0;  // when the last layout was priced
};

}  // namespace shardwise
