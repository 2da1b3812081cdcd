#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "planner/schedule/schedule.h"

namespace shardwise {

/// Writes the passes of a stage with two chunks, which take their micro-batches in order: callers
/// say which chunk and which half, never which micro-batch.
class PassList {
 public:
  /// Micro-batches of a chunk count from `first`: those that come from the other end.
  void start(std::int16_t chunk, std::int32_t first) {
    forwards_[at(chunk)] = backwards_[at(chunk)] = first;
  }
  void forward(std::int16_t chunk) { add(LayerPart::forward, chunk, forwards_); }
  /// A forward pass of one direction beside a backward pass of the other.
  void both(std::int16_t forward_chunk, std::int16_t backward_chunk) {
    forward(forward_chunk);
    order_.back().with_next = true;
    backward(backward_chunk);
  }
  void backward(std::int16_t chunk) { add(LayerPart::backward, chunk, backwards_); }
  /// The input gradient; its weight gradient joins the deferred ones.
  void backward_input(std::int16_t chunk) {
    put_off_.push_back({LayerPart::backward_weight, chunk, backwards_[at(chunk)]});
    add(LayerPart::backward_input, chunk, backwards_);
  }
  /// The weight gradient that was deferred first, of any chunk.
  void weight() {
    order_.push_back(put_off_.front());
    put_off_.pop_front();
  }
  bool weights_put_off() const { return !put_off_.empty(); }
  std::int32_t forwards(std::int16_t chunk) const { return forwards_[at(chunk)]; }

  std::vector<PipelinePass> take() { return std::move(order_); }

 private:
  using Counts = std::array<std::int32_t, 2>;
  static std::size_t at(std::int16_t chunk) { return static_cast<std::size_t>(chunk); }
  void add(LayerPart part, std::int16_t chunk, Counts& counts) {
    order_.push_back({part, chunk, counts[at(chunk)]++});
  }

  std::vector<PipelinePass> order_;
  std::deque<PipelinePass> put_off_;
  Counts forwards_{};
  Counts backwards_{};
};

}  // namespace shardwise
