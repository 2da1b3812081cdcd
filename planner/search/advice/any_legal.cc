#include "planner/search/advice/any_legal.h"

#include <cstddef>

#include "planner/search/space/shape_cache.h"
#include "planner/search/work_list.h"

namespace shardwise {

Result<bool> any_legal(const SearchRequest& request) {
  const Result<WorkList> work = work_list(request);
  if (!work) return work.problems();
  ShapeCache shapes(*request.cluster);
  for (const SearchTask& task : work->tasks) {
    EngineSpace& space = *work->spaces[static_cast<std::size_t>(task.engine)];
    DegreeGroup& group = space.groups[static_cast<std::size_t>(task.group)];
    if (group.meshes.empty()) space.enumerator->place(group, shapes);
    SpaceCounts counts = space.enumerator->no_counts();
    if (work->item(task, counts).layouts() > 0) return true;
  }
  return false;
}

}  // namespace shardwise
