#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/search/explore.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/work_list.h"

namespace shardwise {

/// Rows of one task whose times are found by one thread.
struct TimingJob {
  std::size_t task = 0;
  std::size_t batch = 0;
  Rows rows;                          // ascending
  std::vector<std::int64_t> indices;  // Candidate::index of them
};

/// Every row of an exploration, in batches that grow: rows that share the passes of a pipeline
/// together, those whose best row ranks first before others.
/// \param tasks, items  of the exploration, by number of the task
std::vector<TimingJob> timing_jobs(const Exploration& all, std::span<const SearchTask> tasks,
                                   std::span<const WorkItem> items);

}  // namespace shardwise
