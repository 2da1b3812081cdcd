#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/search/search.h"
#include "planner/search/space/enumerate.h"

namespace shardwise {

/// One micro-batch size of one group of degrees of one engine: a share of a space for one thread.
struct SearchTask {
  std::int32_t engine = 0;
  std::int32_t group = 0;
  std::int32_t micro_batch_size = 0;
  std::int64_t number = 0;  // in the enumeration
  std::int32_t cp = 1;

  /// Index of its first layout: layouts of all tasks in the order of the enumeration.
  std::int64_t first_index() const { return number << kIndexBits; }
  /// Index of the first layout of the task after it.
  std::int64_t end_index() const { return (number + 1) << kIndexBits; }
  /// Number of the task that has the layout `index`.
  static std::size_t number_of(std::int64_t index) {
    return static_cast<std::size_t>(index >> kIndexBits);
  }

 private:
  static constexpr int kIndexBits = 38;  // layouts of a task
};

/// The space of a request for one engine.
struct EngineSpace {
  EngineSpace(const SearchRequest& request, const EngineProfile& profile);
  EngineSpace(const EngineSpace&) = delete;
  EngineSpace& operator=(const EngineSpace&) = delete;

  const EngineProfile* engine;
  LayoutQuestion question;
  SearchSpace space;
  std::unique_ptr<Enumerator> enumerator;
  std::vector<DegreeGroup> groups;
  SpaceCounts first;  // counted with the groups
};

/// The space of a request, cut into tasks.
struct WorkList {
  std::vector<std::unique_ptr<EngineSpace>> spaces;  // by engine
  std::vector<SearchTask> tasks;                     // in the order of the enumeration

  const EngineSpace& space(const SearchTask& task) const {
    return *spaces[static_cast<std::size_t>(task.engine)];
  }
  /// The layouts of a task. Adds what it enumerates to `counts`. \pre place()
  WorkItem item(const SearchTask& task, SpaceCounts& counts) const;
  /// Places the meshes of all groups on the links, on request.threads threads, unless it is
  /// stopped.
  void place(const SearchRequest& request);
};

/// \returns the work, its meshes not placed, or what is wrong with a lock or an opened field
Result<WorkList> work_list(const SearchRequest& request);

}  // namespace shardwise
