#include "planner/search/work_list.h"

#include <string>
#include <utility>

#include "planner/engines/executed.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search_threads.h"

namespace shardwise {
namespace {

/// Counts are of 64 bits.
constexpr double kMostEnumerated = 9e18;
Diagnostic too_large() {
  return {"command line",
          0,
          0,
          "--open",
          "the space has more than 9e18 layouts, too many to count",
          "open fewer fields, lock one, or leave out --space full"};
}

/// Narrows or widens a space as the request says. \returns what is wrong with it
Diagnostics shape(EngineSpace& each, const SearchRequest& request) {
  Diagnostics problems;
  for (const std::string& key : request.opened) {
    const std::string problem = open(each.space, each.question, key);
    if (!problem.empty()) problems.push_back({"command line", 0, 0, "--open", problem, ""});
  }
  for (const auto& [key, value] : request.locks) {
    const std::string problem = lock(each.space, key, value);
    if (!problem.empty()) problems.push_back({"command line", 0, 0, "--lock", problem, ""});
  }
  if (!request.executed) return problems;
  for (const HeldField& field :
       held_to_executed(*request.cluster, *each.engine, request.locks, request.opened)) {
    hold(each.space, field.key, field.values);
  }
  return problems;
}

}  // namespace

EngineSpace::EngineSpace(const SearchRequest& request, const EngineProfile& profile)
    : engine(&profile),
      question(layout_question(*request.model, *request.cluster, *request.job, profile)),
      space(search_space(question, request.breadth)) {}

WorkItem WorkList::item(const SearchTask& task, SpaceCounts& counts) const {
  const EngineSpace& of = space(task);
  return of.enumerator->work_item(of.groups[static_cast<std::size_t>(task.group)],
                                  task.micro_batch_size, counts);
}

void WorkList::place(const SearchRequest& request) {
  std::vector<std::pair<const Enumerator*, DegreeGroup*>> groups;
  for (const auto& each : spaces) {
    for (DegreeGroup& group : each->groups) groups.emplace_back(each->enumerator.get(), &group);
  }
  SharedIndices next(groups.size(), request.stop);
  in_parallel(thread_count(request.threads), [&](int) {
    const SearchMemory::BorrowedTables tables = request.memory->borrow(*request.cluster);
    std::size_t g = 0;
    while (next.take(g)) groups[g].first->place(*groups[g].second, tables->shapes);
  });
}

Result<WorkList> work_list(const SearchRequest& request) {
  WorkList work;
  for (const EngineProfile* engine : request.engines) {
    EngineSpace& each = *work.spaces.emplace_back(std::make_unique<EngineSpace>(request, *engine));
    const Diagnostics problems = shape(each, request);
    if (!problems.empty()) return problems;
    if (each.space.product() > kMostEnumerated) return too_large();
    each.enumerator = std::make_unique<Enumerator>(each.question, each.space);
    each.first = each.enumerator->no_counts();
    each.groups = each.enumerator->degree_groups(each.first);
    for (std::size_t g = 0; g < each.groups.size(); ++g) {
      for (const std::int32_t size : each.enumerator->micro_batch_sizes()) {
        work.tasks.push_back(
            {static_cast<std::int32_t>(work.spaces.size() - 1), static_cast<std::int32_t>(g), size,
             static_cast<std::int64_t>(work.tasks.size()), each.groups[g].base.cp});
      }
    }
  }
  return work;
}

}  // namespace shardwise
