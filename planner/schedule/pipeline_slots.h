#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/schedule/schedule.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

struct PlainSlots;

/// The passes and messages of a pipeline in an order in which each comes after what it waits for,
/// and as far as possible after what its host may wait for: made once for a schedule, swept for
/// each set of times (`run_pipeline`).
struct PipelineSlots {
  struct Slot {
    bool message = false;  // from `stage` to `to`, else a pass of `stage`
    LayerPart part = LayerPart::forward;
    bool first = false;  // pass: the first of its chunk
    bool last = false;   // and one back of its last micro-batch
    std::int32_t stage = 0;
    std::int32_t to = 0;
    std::int32_t chunk = 0;  // of the stage
    /// Slots whose end it waits for, besides the slot of its kind before it on its stage, -1 none:
    /// of a pass the messages it receives, of a message the pass that made it and, where receives
    /// are not posted ahead, the one after which it is received.
    std::array<std::int32_t, 2> after = {-1, -1};
    friend bool operator==(const Slot&, const Slot&) = default;
  };
  std::vector<Slot> slots;
  /// Where messages take turns with buffers (MessageTurns), by slot, -1 none, else empty: of a
  /// message the pass whose first layer reads what was in its receiver's buffer before, of a pass
  /// the message that leaves the buffer its last layer fills.
  std::vector<std::int32_t> room;
  std::int32_t stages = 1;
  std::int32_t chunks = 1;    // of a stage
  bool posts_ahead = true;    // receives do not wait for the pass before
  std::int64_t messages = 0;  // between two stages, both ways, of the two that exchange most
  /// Slots that stand for `times` as many, one run of them after the other. A slot that one of them
  /// waits for and that lies before `begin` is of the run before: `length` slots later.
  struct Loop {
    std::size_t begin = 0;
    std::size_t length = 0;
    std::int64_t times = 1;
    std::size_t window = 0;  // so many slots before `begin` are waited for from then on
    std::size_t end() const { return begin + length; }
  };
  std::vector<Loop> loops;  // in order, none within another
  /// The same slots for the plain sweep; none of one stage, with loops, or where messages take
  /// turns.
  std::shared_ptr<const PlainSlots> plain;
};

/// After how many micro-batches all stages of a schedule do the same again.
std::int64_t microbatches_a_period(const Layout& layout);
/// So many have a whole warm-up and a whole cool-down.
inline std::int64_t microbatches_apart(const Layout& layout) { return 4 * layout.pp + 4; }

/// Up to so many micro-batches of a pipeline have slots of their own; of more, those in the middle
/// are loops.
inline constexpr std::int64_t kMostUnrolled = 512;

/// A stage receives from another in the order in which that one sends. \param planned_buffers
/// messages take turns with those of an arena (plans_buffers) \param most_unrolled  micro-batches
PipelineSlots pipeline_slots(const Layout& layout, std::int64_t num_microbatches,
                             bool planned_buffers = false,
                             std::int64_t most_unrolled = kMostUnrolled);

}  // namespace shardwise
