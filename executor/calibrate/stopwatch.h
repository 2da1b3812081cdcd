#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/comm/world.h"

namespace shardwise::exec {

/// Times calls that all ranks of a job make at once, as they compute at once in a step: where ranks
/// share processors a call takes as long as its share lets it.
class Stopwatch {
 public:
  /// \param threads  that compute, a rank
  /// \param cores    that the ranks of this machine share
  /// \param least_s  a run of calls lasts that long at least; three are made
  Stopwatch(World& world, int threads, int cores, double least_s);

  // Seconds of one call, the least of three runs; the same on every rank, each of which makes the
  // same calls in the same order.

  /// Times `call` from the common start until the last rank has made its calls.
  double seconds(const std::function<void()>& call);
  /// Times a call that only computes, on the calling thread where ranks have one: the processor
  /// time that it takes of its share. On an idle machine that is the same; on others it leaves out
  /// the time in which something else ran.
  double computing(const std::function<void()>& call);

 private:
  double timed(const std::function<void()>& call, bool computes);
  std::vector<double> all_of(double mine);

  std::unique_ptr<ControlGroup> everyone_;
  bool one_thread_;
  double share_;  // seconds of the clock for one of a rank's processor
  double least_s_;
};

}  // namespace shardwise::exec
