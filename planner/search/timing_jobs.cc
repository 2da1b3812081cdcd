#include "planner/search/timing_jobs.h"

#include <algorithm>
#include <optional>

namespace shardwise {
namespace {

/// Rows with one number share the passes of a pipeline.
std::vector<std::size_t> blocks_of_rows(const Exploration& all, std::span<const SearchTask> tasks,
                                        std::span<const WorkItem> items) {
  std::vector<std::size_t> blocks(all.rows());
  std::size_t row = 0;
  std::size_t block = 0;
  for (std::size_t t = 0; t < items.size(); ++t) {
    std::int64_t end = tasks[t].first_index();
    for (const WorkItem::Stretch& stretch : items[t].stretches) {
      const std::size_t of_stretch = stretch.pipelines.size() * items[t].layers.size();
      for (std::size_t b = 0; b < of_stretch; ++b, ++block) {
        end += stretch.leaves();
        for (; row < all.rows() && all.index[row] < end; ++row) blocks[row] = block;
      }
    }
  }
  return blocks;
}

}  // namespace

std::vector<TimingJob> timing_jobs(const Exploration& all, std::span<const SearchTask> tasks,
                                   std::span<const WorkItem> items) {
  const std::vector<std::size_t> blocks = blocks_of_rows(all, tasks, items);
  const std::size_t most_blocks = blocks.empty() ? 0 : blocks.back() + 1;
  // Where a row of a block fits, those that do not are timed later.
  std::vector<Rows> shares(2 * most_blocks);
  std::vector<std::size_t> order;  // of the shares, by their best row
  for (const std::uint32_t row : ranked_rows(all, Objective::step_time)) {
    const std::size_t share = 2 * blocks[row] + (all.fit[row] == Fit::fits ? 0 : 1);
    if (shares[share].empty()) order.push_back(share);
    shares[share].push_back(row);
  }
  constexpr std::size_t kFirstBatch = 128;  // rows
  constexpr std::size_t kLargestBatch = 4096;
  std::vector<TimingJob> jobs;
  std::vector<std::optional<std::size_t>> job_of_task(tasks.size());
  std::vector<std::size_t> tasks_of_batch;
  std::size_t batch = 0;
  std::size_t room = kFirstBatch;
  std::size_t rows = 0;
  for (const std::size_t share : order) {
    const std::size_t task = SearchTask::number_of(all.index[shares[share].front()]);
    if (!job_of_task[task]) {
      job_of_task[task] = jobs.size();
      jobs.push_back({task, batch, {}, {}});
      tasks_of_batch.push_back(task);
    }
    Rows& of_job = jobs[*job_of_task[task]].rows;
    of_job.insert(of_job.end(), shares[share].begin(), shares[share].end());
    rows += shares[share].size();
    if (rows < room) continue;
    rows = 0;
    room = std::min(2 * room, kLargestBatch);
    ++batch;
    for (const std::size_t done : tasks_of_batch) job_of_task[done].reset();
    tasks_of_batch.clear();
  }
  for (TimingJob& job : jobs) {
    std::ranges::sort(job.rows);
    for (const std::uint32_t row : job.rows) job.indices.push_back(all.index[row]);
  }
  return jobs;
}

}  // namespace shardwise
