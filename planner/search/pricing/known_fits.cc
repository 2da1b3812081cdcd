#include "planner/search/pricing/known_fits.h"

#include "planner/search/space/search_request.h"

namespace shardwise {
namespace {

ClusterSpec without_bandwidths(ClusterSpec cluster) {
  for (LinkTier& tier : cluster.tiers) tier.bandwidth = BytesPerSecond(0);
  return cluster;
}

}  // namespace

KnownFits::KnownFits(const SearchRequest& request)
    : model_(*request.model),
      cluster_(without_bandwidths(*request.cluster)),
      job_(*request.job),
      engine_(*request.engines.front()),
      most_memory_(request.most_memory),
      executed_(request.executed) {}

bool KnownFits::is_of(const SearchRequest& request) const {
  return request.cluster->gpus == cluster_.gpus && request.executed == executed_ &&
         request.most_memory == most_memory_ && *request.job == job_ &&
         *request.engines.front() == engine_ && without_bandwidths(*request.cluster) == cluster_ &&
         *request.model == model_;
}

std::vector<KnownFits::Fits>& KnownFits::of_task(std::size_t task, std::size_t layouts) {
  std::vector<Fits>& known = tasks_[task];
  known.resize(layouts, Fits::unknown);
  return known;
}

}  // namespace shardwise
