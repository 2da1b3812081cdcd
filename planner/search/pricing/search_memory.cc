#include "planner/search/pricing/search_memory.h"

#include <algorithm>

#include "planner/schedule/kept_slots.h"
#include "planner/search/pricing/pipeline_stages.h"

namespace shardwise {

std::shared_ptr<const PipelineSlots> KnownSchedule::slots(const Layout& layout,
                                                          std::int64_t num_microbatches,
                                                          bool planned_buffers) {
  const std::lock_guard lock(making_);
  if (!slots_) {
    slots_ = kept_slots(layout, num_microbatches, planned_buffers);
    slot_count_ = slots_->slots.size();
  }
  return slots_;
}

std::size_t KnownSchedule::place_of(std::span<const StageLayers> stages, std::size_t kinds) const {
  const auto found = std::ranges::find_if(paths_, [&](const Paths& each) {
    return each.kinds == kinds && std::ranges::equal(each.stages, stages, alike);
  });
  return static_cast<std::size_t>(found - paths_.begin());
}

KnownPaths KnownSchedule::paths(std::span<const StageLayers> stages, std::size_t kinds) const {
  const std::lock_guard lock(mutex_);
  const std::size_t place = place_of(stages, kinds);
  return place == paths_.size() ? KnownPaths() : paths_[place].known;
}

void KnownSchedule::add(std::span<const StageLayers> stages, std::size_t kinds,
                        const PathCounts& path) {
  constexpr std::size_t kMostModels = 8;
  const std::lock_guard lock(mutex_);
  if (place_of(stages, kinds) == paths_.size()) {
    if (paths_.size() == kMostModels) paths_.erase(paths_.begin());
    paths_.push_back({{stages.begin(), stages.end()}, kinds, {}});
  }
  paths_[place_of(stages, kinds)].known.add(path);
}

std::shared_ptr<KnownSchedule> SearchMemory::schedule(const Layout& layout,
                                                      std::int64_t num_microbatches,
                                                      bool planned_buffers) {
  const Key key = {layout.pp, layout.vpp, layout.schedule, num_microbatches, planned_buffers};
  const std::lock_guard lock(mutex_);
  const auto [place, made] = places_.try_emplace(key);
  if (made) {
    schedules_.emplace_front(key, std::make_shared<KnownSchedule>());
    place->second = schedules_.begin();
    drop_the_oldest();
  } else {
    schedules_.splice(schedules_.begin(), schedules_, place->second);
  }
  return schedules_.front().second;
}

void SearchMemory::drop_the_oldest() {
  std::size_t slots = 0;
  auto end = schedules_.begin();
  for (; end != schedules_.end() && slots <= kMostSlots; ++end) slots += end->second->slot_count();
  for (auto at = end; at != schedules_.end();) {
    places_.erase(at->first);
    at = schedules_.erase(at);
  }
}

bool same_task(const Layout& a, const Layout& b) {
  const auto key = [](const Layout& of) {
    return std::tuple(of.tp, of.cp, of.ep, of.etp, of.micro_batch_size);
  };
  return key(a) == key(b);
}

void SearchMemory::keep_best(const Layout& best) {
  const std::lock_guard lock(mutex_);
  std::erase_if(best_, [&](const Layout& each) { return same_task(each, best); });
  best_.insert(best_.begin(), best);
  if (best_.size() > kMostBest) best_.pop_back();
}

std::vector<Layout> SearchMemory::last_best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

std::unique_ptr<KnownFits> SearchMemory::borrow_fits(const SearchRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(fits_, [&](const auto& each) { return each->is_of(request); });
  if (found == fits_.end()) return std::make_unique<KnownFits>(request);
  std::unique_ptr<KnownFits> fits = std::move(*found);
  fits_.erase(found);
  return fits;
}

void SearchMemory::give_back(std::unique_ptr<KnownFits> fits) {
  const std::lock_guard lock(mutex_);
  fits_.push_front(std::move(fits));
  if (fits_.size() > kMostFits) fits_.pop_back();
}

SearchMemory::BorrowedTables SearchMemory::borrow(const ClusterSpec& cluster) {
  const std::lock_guard lock(mutex_);
  ClusterSpec wanted = cluster;
  const auto found = std::ranges::find_if(tables_, [&](const auto& each) {
    wanted.gpus = each->cluster.gpus;  // of any size
    return wanted == each->cluster;
  });
  std::unique_ptr<ClusterTables> tables;
  if (found == tables_.end()) {
    tables = std::make_unique<ClusterTables>(cluster);
  } else {
    tables = std::move(*found);
    tables_.erase(found);
  }
  return {tables.release(), GiveBack{shared_from_this()}};
}

void SearchMemory::GiveBack::operator()(ClusterTables* tables) const {
  const std::lock_guard lock(memory->mutex_);
  memory->tables_.emplace_front(tables);
  if (memory->tables_.size() > kMostTables) memory->tables_.pop_back();
}

}  // namespace shardwise
