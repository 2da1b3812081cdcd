#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

/// Passes whose activations a stage holds while another pass runs, by the model chunk they are of:
/// begun before it, and not yet back.
struct HeldPasses {
  std::int32_t chunk = 0;  // of the pass that runs
  std::int64_t lower = 0;  // of each chunk before it
  std::int64_t own = 0;    // of its own
  std::int64_t higher = 0;
  // Interleaved: so many passes of all chunks have begun, and come back, out of rounds of pp
  // micro-batches through vpp chunks.
  std::int32_t pp = 0;
  std::int32_t vpp = 0;  // 0 = not interleaved
  std::int64_t begun = 0;
  std::int64_t back = 0;

  std::int64_t of(std::int32_t which) const;
};

/// Bytes that a pass of each chunk of a stage keeps, summed up.
class SavedChunks {
 public:
  explicit SavedChunks(std::span<const std::int64_t> saved);

  /// Sum of the chunks before `chunk`, and of those from `begin` to before `end`.
  std::int64_t before(std::int64_t chunk) const { return sums_[static_cast<std::size_t>(chunk)]; }
  std::int64_t of(std::int64_t begin, std::int64_t end) const {
    return before(end) - before(begin);
  }
  std::int64_t chunks() const { return static_cast<std::int64_t>(sums_.size()) - 1; }

 private:
  std::vector<std::int64_t> sums_;  // of the chunks before each, and of all
};

/// The most a stage holds, in bytes, while a pass of `chunk` runs.
///
/// p stages, stage s, m micro-batches, v chunks. Others than the pass that runs:
/// 1F1B min(m, p - s) - 1; GPipe m - 1; looped BFS m of each chunk before and m - 1 of its own;
/// ZB-H1 min(m, p) - 1 and ZB-H2 min(m, 2 p - 1) - 1, of which some wait for weight gradients only;
/// ZB-V 2 p - 1 - s of the chunk on the way down and s of the one on the way up, whatever runs;
/// DualPipeV 2 p - 1 - s down and s + 1 up while the first runs, 2 p - s and s while the other
/// does; DualPipe the same with p for 2 p. Interleaved 1F1B has w = 2 (p - 1 - s) + (v - 1) p
/// passes more begun than come back: which chunks they are of changes with the pass, and the one
/// that weighs most is looked for among those at which a chunk's turn begins or ends. Sources:
/// Narayanan et al. (arXiv:2104.04473, section 2.2), Korthikanti et al. (arXiv:2205.05198,
/// section 4.2.3), Qi et al. (arXiv:2401.10241, sections 2 and 6), DeepSeek-V3 (arXiv:2412.19437,
/// table 2) and deepseek-ai/DualPipe:README.md have the sums.
/// One stage alone runs the chunks of a micro-batch one after the other.
/// \pre check_layout has no diagnostics
HeldPasses held_passes(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
                       std::int32_t chunk, bool backward, const SavedChunks& saved);

/// Passes held while a backward pass runs of any micro-batch of the chunk but its first, whose
/// gradients join those of others.
HeldPasses held_when_joining(const Layout& layout, std::int32_t stage,
                             std::int64_t num_microbatches, std::int32_t chunk,
                             const SavedChunks& saved);

/// Whether the stage is fullest while a pass runs whose weight gradients are deferred: all of its
/// chunk is kept until then, where other passes free a layer with its backward operation. DualPipe
/// defers them at its beginning and end alone, with a pass less in flight.
constexpr bool defers_weight_gradients(const Layout& layout) {
  return layout.pp > 1 && facts_of(layout).splits_backward;
}

/// Bytes of them. \pre `saved` has every chunk of the stage
std::int64_t bytes_of(const HeldPasses& held, const SavedChunks& saved);

/// All that held_passes() chooses from for a stage of which several chunks keep alike, as passes of
/// each of them: made once for a pipeline, asked for whatever its layers keep.
class HeldChoices {
 public:
  /// \param alike  by chunk: the first one that keeps as much, whatever that is
  HeldChoices(const Layout& layout, std::int32_t stage, std::int64_t num_microbatches,
              std::span<const std::int32_t> alike);

  /// Bytes of the most that is held while a pass of `chunk`, or of one that keeps alike, runs.
  /// \param saved  by chunk
  std::int64_t most(std::int32_t chunk, bool backward, std::span<const std::int64_t> saved) const;

 private:
  /// Passes of the chunks that keep like each of `kinds_`.
  using Counts = std::vector<std::int64_t>;
  static void add(std::vector<Counts>& choices, Counts counts);

  std::vector<std::int32_t> kinds_;                          // a chunk that keeps like no other
  std::vector<std::array<std::vector<Counts>, 2>> choices_;  // by kind, forward and backward
};

/// Micro-batch chunks whose activations a stage holds at its fullest, out of `chunks` a micro-batch
/// is cut into on that stage.
struct InFlight {
  std::int64_t held = 1;
  std::int64_t chunks = 1;
};
InFlight micro_batches_in_flight(const Layout& layout, std::int32_t stage,
                                 std::int64_t num_microbatches);

}  // namespace shardwise
