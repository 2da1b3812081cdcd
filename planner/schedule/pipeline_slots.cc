#include "planner/schedule/pipeline_slots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/schedule/plain_slots.h"
#include "planner/schedule/slot_order.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Finds what one period of micro-batches adds to the slots of a step: the same slots in one place
/// or, where forward and backward passes are apart, in two.
class Insertion {
 public:
  /// \param few, more  of one layout, the second with one period more
  Insertion(const PipelineSlots& few, const PipelineSlots& more) : few_(few), more_(more) {}

  /// \returns each place as a loop that runs once, or nothing where `more` is not `few` with slots
  /// inserted at so many places
  std::optional<std::vector<PipelineSlots::Loop>> find(std::size_t places) {
    const std::size_t added = more_.slots.size() - few_.slots.size();
    if (added == 0 || added % places != 0) return std::nullopt;
    const std::size_t length = added / places;
    std::vector<PipelineSlots::Loop> loops;
    std::size_t shift = 0;
    for (std::size_t i = 0; i <= few_.slots.size();) {
      if (i < few_.slots.size() && alike(few_, i, more_, i + shift)) {
        ++i;
        continue;
      }
      if (i == few_.slots.size() && shift == added) break;
      if (shift == added || i < length) return std::nullopt;
      for (std::size_t j = i; j < i + length; ++j) {
        if (!alike(few_, j - length, more_, j + shift)) return std::nullopt;
      }
      loops.push_back(middle(i, length, loops.empty() ? 0 : loops.back().end()));
      shift += length;
    }
    for (PipelineSlots::Loop& loop : loops) loop.window = window(loop.begin);
    return loops;
  }

 private:
  /// Whether slot `j` does what slot `i` does, and waits for the same at the same distance.
  static bool alike(const PipelineSlots& a, std::size_t i, const PipelineSlots& b, std::size_t j) {
    if (j >= b.slots.size()) return false;
    const auto shift =
        static_cast<std::int32_t>(static_cast<std::ptrdiff_t>(j) - static_cast<std::ptrdiff_t>(i));
    const auto moved = [&](std::int32_t slot) { return slot < 0 ? slot : slot + shift; };
    PipelineSlots::Slot slot = a.slots[i];
    for (std::int32_t& after : slot.after) after = moved(after);
    return slot == b.slots[j] && (a.room.empty() || moved(a.room[i]) == b.room[j]);
  }

  /// The period in the middle of all that are alike before `end`.
  PipelineSlots::Loop middle(std::size_t end, std::size_t length, std::size_t lowest) const {
    std::size_t begin = end - length;
    while (begin > lowest && alike(few_, begin - 1, few_, begin - 1 + length)) --begin;
    const std::size_t periods = (end - begin) / length;
    begin = end - (periods - periods / 2) * length;
    return {begin, length, 1, 0};
  }

  std::size_t window(std::size_t begin) const {
    auto lowest = static_cast<std::int32_t>(begin);
    for (std::size_t i = begin; i < few_.slots.size(); ++i) {
      for (const std::int32_t after : few_.slots[i].after) {
        if (after >= 0) lowest = std::min(lowest, after);
      }
      if (!few_.room.empty() && few_.room[i] >= 0) lowest = std::min(lowest, few_.room[i]);
    }
    return begin - static_cast<std::size_t>(lowest);
  }

  const PipelineSlots& few_;
  const PipelineSlots& more_;
};

/// The slots of a step with a loop, or nothing where no loop is found.
std::optional<PipelineSlots> with_loops(const Layout& layout, std::int64_t num_microbatches,
                                        bool planned_buffers) {
  const std::int64_t period = microbatches_a_period(layout);
  const std::size_t places = layout.schedule == PipelineSchedule::gpipe ? 2 : 1;
  // Until warm-up and cool-down are whole and apart.
  for (std::int64_t least = microbatches_apart(layout); least < num_microbatches / 2; least *= 2) {
    const std::int64_t few =
        num_microbatches - (num_microbatches - least) / period * period;  // least or a little more
    if (few + period >= num_microbatches) return std::nullopt;
    SlotOrder order = slot_order(layout, few, planned_buffers);
    const SlotOrder more = slot_order(layout, few + period, planned_buffers);
    std::optional<std::vector<PipelineSlots::Loop>> loops =
        Insertion(order.slots, more.slots).find(places);
    if (!loops) continue;
    const std::int64_t left_out = (num_microbatches - few) / period;
    for (PipelineSlots::Loop& loop : *loops) loop.times += left_out;
    order.slots.loops = std::move(*loops);
    for (std::size_t s = 0; s < order.exchanged.size(); ++s) {
      const std::int64_t each = more.exchanged[s] - order.exchanged[s];
      order.slots.messages = std::max(order.slots.messages, order.exchanged[s] + left_out * each);
    }
    return std::move(order.slots);
  }
  return std::nullopt;
}

/// Micro-batches of one stage wait for nothing but one another.
PipelineSlots one_stage_slots(const Layout& layout, std::int64_t num_microbatches) {
  PipelineSlots slots =
      slot_order(layout, std::min<std::int64_t>(num_microbatches, 3), false).slots;
  const std::size_t each = slots.slots.size() / 3;
  if (num_microbatches > 3) slots.loops.push_back({each, each, num_microbatches - 2, 0});
  return slots;
}

}  // namespace

std::int64_t microbatches_a_period(const Layout& layout) {
  if (facts_of(layout).copies_model) return 2;    // one from each end
  return is_interleaved(layout) ? layout.pp : 1;  // rounds of pp
}

PipelineSlots pipeline_slots(const Layout& layout, std::int64_t num_microbatches,
                             bool planned_buffers, std::int64_t most_unrolled) {
  if (layout.pp == 1) return one_stage_slots(layout, num_microbatches);
  if (num_microbatches > most_unrolled) {
    std::optional<PipelineSlots> slots = with_loops(layout, num_microbatches, planned_buffers);
    if (slots) return std::move(*slots);
  }
  SlotOrder all = slot_order(layout, num_microbatches, planned_buffers);
  all.slots.messages = std::ranges::max(all.exchanged);
  if (all.slots.room.empty()) {
    all.slots.plain = std::make_shared<const PlainSlots>(plain_slots(all.slots));
  }
  return std::move(all.slots);
}

}  // namespace shardwise
