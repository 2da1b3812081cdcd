#include "executor/comm/sockets/process_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/comm/rank_list.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

ProcessPeers::ProcessPeers(std::vector<std::int64_t> ranks, const Patience& patience)
    : ranks_(std::move(ranks)), patience_(patience) {
  const auto self = std::ranges::find(ranks_, std::int64_t{patience_.rank});
  SHARDWISE_CHECK(self != ranks_.end(), "a rank joins groups that it is part of");
  rank_ = static_cast<int>(self - ranks_.begin());
}

void ProcessPeers::give_up(const char* call, const std::vector<std::size_t>& missing) const {
  std::vector<std::int64_t> who;
  for (const std::size_t each : missing) who.push_back(ranks_[each]);
  patience_.abort->raise_hung(fmt::format("rank {} waited {} s in {} for rank {}", patience_.rank,
                                          patience_.seconds, call, rank_list(who)));
  throw Aborted("another rank did not arrive");
}

}  // namespace shardwise::exec
