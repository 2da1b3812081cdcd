#include "executor/launch/rank_processors.h"

#include <sched.h>

#include <cstddef>
#include <utility>

namespace shardwise::exec {
namespace {

bool move_to(const std::vector<int>& processors) {
  cpu_set_t set{};
  for (const int each : processors) CPU_SET(static_cast<std::size_t>(each), &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

std::vector<int> own_processors() {
  std::vector<int> own;
  cpu_set_t set{};
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return own;
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if (CPU_ISSET(static_cast<std::size_t>(each), &set)) own.push_back(each);
  }
  return own;
}

std::vector<int> processors_of_rank(const std::vector<int>& all, int rank, int ranks) {
  const auto count = static_cast<int>(all.size());
  if (count > 0 && ranks % count == 0) {
    return {all[static_cast<std::size_t>(rank / (ranks / count))]};
  }
  if (count % ranks != 0) return {};
  const auto first = all.begin() + std::ptrdiff_t{count / ranks} * rank;
  return {first, first + count / ranks};
}

StayOn::StayOn(const std::vector<int>& processors) {
  if (processors.empty()) return;
  std::vector<int> before = own_processors();
  if (before != processors && move_to(processors)) before_ = std::move(before);
}

StayOn::~StayOn() {
  if (!before_.empty()) move_to(before_);
}

}  // namespace shardwise::exec
