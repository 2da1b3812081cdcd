#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/space/enumerate.h"
#include "planner/search/space/space.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Every layout of a job's space, in items that share degrees and a micro-batch size. The job's
/// parts outlive it.
class EnumeratedSpace {
 public:
  EnumeratedSpace(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                  const EngineProfile& engine, Breadth breadth);
  EnumeratedSpace(const EnumeratedSpace&) = delete;
  EnumeratedSpace& operator=(const EnumeratedSpace&) = delete;

  std::int64_t layouts() const { return layouts_; }
  const std::vector<WorkItem>& items() const { return items_; }
  std::vector<Layout> all() const;
  /// Layouts drawn with equal chance, one as often as it is drawn. The same of equal seeds.
  std::vector<Layout> draw(int count, std::uint64_t seed) const;
  /// The item of each of those that draw() returns.
  std::vector<std::size_t> draw_items(int count, std::uint64_t seed) const;

 private:
  std::vector<std::int64_t> drawn_numbers(int count, std::uint64_t seed) const;
  std::size_t item_of(std::int64_t number) const;

  LayoutQuestion question_;
  SearchSpace space_;
  std::vector<DegreeGroup> groups_;
  std::vector<WorkItem> items_;
  std::vector<std::int64_t> before_;  // layouts of the items before
  std::int64_t layouts_ = 0;
};

}  // namespace shardwise
