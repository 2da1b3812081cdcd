#include "planner/cost/plain_sweep.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

constexpr std::size_t kParts = 4;  // LayerPart of a pass

/// One of the two runs.
class Clock {
 public:
  /// \param end  by slot, and one more of no slot
  Clock(std::size_t stages, std::span<const ChunkTime> chunks, double hop, std::vector<double>& end)
      : end_(end), free_(3 * stages) {
    for (const ChunkTime& chunk : chunks) {
      for (std::size_t part = 0; part < kParts; ++part) {
        seconds_.push_back(chunk.of(static_cast<LayerPart>(part)).value());
      }
    }
    seconds_.push_back(hop);
    end_.back() = 0;
  }

  /// \param after, free  places of what slot `i` waits for; it leaves the latter busy until its end
  /// \param takes        place of its seconds
  /// \returns when it begins
  double take(std::size_t i, std::size_t after, std::size_t also_after, std::size_t free,
              std::size_t also_free, std::size_t takes) {
    const double begin =
        std::max(std::max(end_[after], end_[also_after]), std::max(free_[free], free_[also_free]));
    end_[i] = free_[free] = free_[also_free] = begin + seconds_[takes];
    return begin;
  }
  /// When the last stage has run its last pass.
  Seconds length(std::size_t stages) const {
    return Seconds(
        *std::max_element(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(stages)));
  }

 private:
  std::vector<double>& end_;
  /// By stage: when compute is free; and its last message is there; and the last one to it.
  std::vector<double> free_;
  std::vector<double> seconds_;  // by place and part, then of a message
};

}  // namespace

RunAndLength sweep_plain(const PipelineSlots& slots, std::span<const ChunkTime> chunks, Seconds hop,
                         SlotEnds& ends) {
  const std::size_t count = slots.slots.size();
  const auto stages = static_cast<std::size_t>(slots.stages);
  const auto per_stage = static_cast<std::size_t>(slots.chunks);
  ends.end.resize(count + 1);
  ends.without_messages.resize(count + 1);
  Clock with(stages, chunks, hop.value(), ends.end);
  Clock without(stages, chunks, 0, ends.without_messages);
  std::vector<ChunkSpan> spans(chunks.size() + 1);  // the last one of all messages
  const auto index = [&](std::int32_t slot) {
    return slot < 0 ? count : static_cast<std::size_t>(slot);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const PipelineSlots::Slot& slot = slots.slots[i];
    const std::size_t after = index(slot.after[0]);
    const std::size_t also_after = index(slot.after[1]);
    const auto stage = static_cast<std::size_t>(slot.stage);
    const auto to = static_cast<std::size_t>(slot.to);
    const std::size_t own = slot.message ? stages + stage : stage;
    const std::size_t into = slot.message ? 2 * stages + to : stage;
    const std::size_t place =
        slot.message ? chunks.size() : stage * per_stage + static_cast<std::size_t>(slot.chunk);
    const std::size_t takes =
        kParts * place + (slot.message ? 0 : static_cast<std::size_t>(slot.part));
    const double begin = with.take(i, after, also_after, own, into, takes);
    without.take(i, after, also_after, own, into, takes);
    ChunkSpan& span = spans[place];
    if (slot.first) span.begin = Seconds(begin);
    span.end = Seconds(ends.end[i]);
    span.last = slot.part;
  }
  ends.end.pop_back();
  ends.without_messages.pop_back();
  spans.pop_back();
  return {{with.length(stages), std::move(spans), static_cast<std::int64_t>(count)},
          without.length(stages)};
}

}  // namespace shardwise
