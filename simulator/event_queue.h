#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardwise::sim {

/// At most one due time for each of a fixed number of lanes; the earliest first, the lower lane
/// among equals. A binary heap that knows where each lane stands.
class EventQueue {
 public:
  explicit EventQueue(std::size_t lanes) : place_(lanes, kAbsent), due_(lanes) {}

  bool empty() const { return heap_.empty(); }
  std::int32_t first() const { return heap_.front(); }
  double time() const { return due_[static_cast<std::size_t>(heap_.front())]; }

  /// Sets or moves the due time of a lane.
  void set(std::int32_t lane, double due) {
    const auto l = static_cast<std::size_t>(lane);
    due_[l] = due;
    if (place_[l] == kAbsent) {
      place_[l] = heap_.size();
      heap_.push_back(lane);
    }
    sift_up(place_[l]);
    sift_down(place_[l]);
  }
  void pop() {
    const std::int32_t gone = heap_.front();
    swap_places(0, heap_.size() - 1);
    heap_.pop_back();
    place_[static_cast<std::size_t>(gone)] = kAbsent;
    if (!heap_.empty()) sift_down(0);
  }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  bool before(std::size_t a, std::size_t b) const {
    const double x = due_[static_cast<std::size_t>(heap_[a])];
    const double y = due_[static_cast<std::size_t>(heap_[b])];
    return x < y || (x == y && heap_[a] < heap_[b]);
  }
  void swap_places(std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[static_cast<std::size_t>(heap_[a])] = a;
    place_[static_cast<std::size_t>(heap_[b])] = b;
  }
  void sift_up(std::size_t at) {
    while (at > 0 && before(at, (at - 1) / 2)) {
      swap_places(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
  }
  void sift_down(std::size_t at) {
    for (;;) {
      std::size_t least = at;
      for (const std::size_t child : {2 * at + 1, 2 * at + 2}) {
        if (child < heap_.size() && before(child, least)) least = child;
      }
      if (least == at) return;
      swap_places(at, least);
      at = least;
    }
  }

  std::vector<std::int32_t> heap_;
  std::vector<std::size_t> place_;
  std::vector<double> due_;
};

}  // namespace shardwise::sim
