#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace shardwise::sim {

/// At most one due time for each lane of each rank; the earliest first. A tournament of the ranks:
/// each node has the earlier of its two children, so that a time that many neighbours have in
/// common, as ranks in step do, is carried to the top once. In which order those due at once come
/// is not said, but the same whenever the same is done.
class EventQueue {
 public:
  /// \param first_lane  of each rank; at the end, the number of lanes
  explicit EventQueue(std::vector<std::uint32_t> first_lane)
      : first_lane_(std::move(first_lane)),
        due_(first_lane_.back(), kNever),
        leaves_(std::bit_ceil(first_lane_.size() - 1)),
        times_(2 * leaves_, kNever),
        ranks_(2 * leaves_) {
    for (std::size_t leaf = 0; leaf < leaves_; ++leaf) {
      ranks_[leaves_ + leaf] = static_cast<std::uint32_t>(leaf);
    }
  }

  bool empty() const { return times_[1] == kNever; }
  double time() const { return times_[1]; }
  /// Takes all lanes that are due at time().
  void take(std::vector<std::int32_t>& lanes) {
    lanes.clear();
    take(1, time(), lanes);
  }

  /// Sets or moves the due time of a lane of a rank.
  void set(std::uint32_t rank, std::int32_t lane, double due) {
    due_[static_cast<std::size_t>(lane)] = due;
    std::size_t node = leaves_ + rank;
    double earliest = due;
    if (due >= times_[node]) {
      for (std::size_t l = first_lane_[rank]; l != first_lane_[rank + 1]; ++l) {
        earliest = std::min(earliest, due_[l]);
      }
      if (times_[node] == earliest) return;
    }
    times_[node] = earliest;
    while (node > 1) {
      earliest = std::min(earliest, times_[node ^ 1U]);
      // Who won before still does unless it is the rank that moved.
      if (times_[node / 2] == earliest && ranks_[node / 2] != rank) return;
      node = play(node, earliest);
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// Fills the parent of a node, at which the time of the winner is known. \returns the parent
  std::size_t play(std::size_t node, double earliest) {
    // Without a branch, since nothing could foresee it.
    const std::size_t winner = node ^ static_cast<std::size_t>(earliest < times_[node]);
    times_[node / 2] = earliest;
    ranks_[node / 2] = ranks_[winner];
    return node / 2;
  }

  /// All that are due `now` below a node, of which there are some.
  void take(std::size_t top, double now, std::vector<std::int32_t>& lanes) {
    const std::uint32_t rank = ranks_[top];
    double earliest = kNever;
    for (std::size_t l = first_lane_[rank]; l != first_lane_[rank + 1]; ++l) {
      if (due_[l] == now) {
        lanes.push_back(static_cast<std::int32_t>(l));
        due_[l] = kNever;
      }
      earliest = std::min(earliest, due_[l]);
    }
    std::size_t node = leaves_ + rank;
    times_[node] = earliest;
    while (node != top) {
      if (times_[node ^ 1U] == now) take(node ^ 1U, now, lanes);
      earliest = std::min(earliest, times_[node ^ 1U]);
      node = play(node, earliest);
    }
  }

  std::vector<std::uint32_t> first_lane_;
  std::vector<double> due_;  // by lane
  std::size_t leaves_;       // a power of 2, so that all ways up are as long
  // By node: 1 is the root, node n has children 2 n and 2 n + 1, ranks are the last nodes.
  std::vector<double> times_;
  std::vector<std::uint32_t> ranks_;  // whose time it is
};

}  // namespace shardwise::sim
