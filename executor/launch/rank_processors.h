#pragma once

#include <vector>

namespace shardwise::exec {

/// Processors that the calling thread may run on, in ascending order.
std::vector<int> own_processors();

/// Those of `all` that rank `rank` of `ranks` threads of one process gets: equal shares, or equal
/// numbers of ranks a processor. Empty where neither is possible: then ranks share all.
/// \pre 0 <= rank < ranks
std::vector<int> processors_of_rank(const std::vector<int>& all, int rank, int ranks);

/// Keeps the calling thread, and those that it starts meanwhile, on `processors` while this lives;
/// empty leaves it where it is. What the system refuses changes nothing.
///
/// Ranks meet many times a step. A scheduler that moves them about has three on one of two
/// processors for some milliseconds at a time, and the other one idles until the last has come.
class StayOn {
 public:
  explicit StayOn(const std::vector<int>& processors);
  ~StayOn();
  StayOn(const StayOn&) = delete;
  StayOn& operator=(const StayOn&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing was changed
};

}  // namespace shardwise::exec
