#include "answers/plan_question.h"

#include <algorithm>

#include "answers/simulated_steps.h"

namespace shardwise::sim {

SearchRequest PlanQuestion::request(std::size_t cluster) const {
  SearchRequest request;
  request.model = &model;
  request.cluster = &clusters[cluster];
  request.job = &job;
  request.engines = engines;
  request.breadth = breadth;
  request.opened = opened;
  request.locks = locks;
  request.executed = executed;
  request.objective = objective;
  // The best to simulate, also where fewer are listed.
  request.top = simulate ? std::max(top, kSimulated) : top;
  request.front = front;
  request.most_memory = max_memory;
  request.threads = threads;
  return request;
}

SearchRequest PlanQuestion::request(std::size_t cluster, std::size_t engine) const {
  SearchRequest one = request(cluster);
  one.engines = {engines[engine]};
  return one;
}

}  // namespace shardwise::sim
