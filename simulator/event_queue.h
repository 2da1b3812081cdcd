#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardwise::sim {

/// At most one due time for each of a fixed number of lanes; the earliest first. A tournament: each
/// node has the earlier of its two children, so that a time that many neighbours have in common, as
/// ranks in step do, is carried to the top once. In which order those due at once come is not said,
/// but the same whenever the same is done.
class EventQueue {
 public:
  explicit EventQueue(std::size_t lanes)
      : lanes_(lanes), earliest_(std::max<std::size_t>(2, 2 * lanes), kNever) {}

  bool empty() const { return earliest_[1] == kNever; }
  double time() const { return earliest_[1]; }
  /// Takes a lane that is due at time().
  std::int32_t pop() {
    const double now = time();
    // Where the last one stood there are often more.
    while (earliest_[last_] != now) last_ /= 2;
    while (last_ < lanes_) last_ = earliest_[2 * last_] == now ? 2 * last_ : 2 * last_ + 1;
    const auto lane = static_cast<std::int32_t>(last_ - lanes_);
    set(lane, kNever);
    return lane;
  }

  /// Sets or moves the due time of a lane.
  void set(std::int32_t lane, double due) {
    std::size_t node = lanes_ + static_cast<std::size_t>(lane);
    earliest_[node] = due;
    while (node > 1) {
      node /= 2;
      const double earlier = std::min(earliest_[2 * node], earliest_[2 * node + 1]);
      if (earlier == earliest_[node]) return;
      earliest_[node] = earlier;
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  std::size_t lanes_;
  std::vector<double> earliest_;  // node n has children 2 n and 2 n + 1; lanes are the last nodes
  std::size_t last_ = 1;          // node of the lane that was taken last
};

}  // namespace shardwise::sim
