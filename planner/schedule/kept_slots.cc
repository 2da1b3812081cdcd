#include "planner/schedule/kept_slots.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <tuple>
#include <utility>

namespace shardwise {
namespace {

/// Slots that are kept, those of all schedules together; 44 bytes each.
constexpr std::size_t kMostSlots = std::size_t{1} << 19;

class KeptSlots {
 public:
  using Key = std::tuple<std::int32_t, std::int32_t, PipelineSchedule, std::int64_t, bool>;
  using Slots = std::shared_ptr<const PipelineSlots>;

  Slots find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &Kept::first);
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return found->second;
  }

  /// \returns those that another thread has kept meanwhile, or `made`
  Slots keep(const Key& key, Slots made) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &Kept::first);
    if (found != kept_.end()) return found->second;
    kept_.emplace_front(key, made);
    std::size_t slots = 0;
    auto end = kept_.begin();
    for (; end != kept_.end() && slots <= kMostSlots; ++end) slots += end->second->slots.size();
    kept_.erase(end, kept_.end());
    return made;
  }

 private:
  using Kept = std::pair<Key, Slots>;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the last asked for first
};

}  // namespace

std::shared_ptr<const PipelineSlots> kept_slots(const Layout& layout, std::int64_t num_microbatches,
                                                bool planned_buffers) {
  static KeptSlots kept;
  const KeptSlots::Key key = {layout.pp, layout.vpp, layout.schedule, num_microbatches,
                              planned_buffers};
  if (KeptSlots::Slots found = kept.find(key)) return found;
  return kept.keep(key, std::make_shared<const PipelineSlots>(
                            pipeline_slots(layout, num_microbatches, planned_buffers)));
}

}  // namespace shardwise
