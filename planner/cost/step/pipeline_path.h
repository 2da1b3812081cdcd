#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "planner/cost/step/pipeline_times.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Parts that paths through the passes and messages of a schedule lead through, each in seconds:
/// layers of each kind forward, backward and of weight gradients, messages, and copies of a layer's
/// activations to the host or back.
class PathTimes {
 public:
  /// \param hop  one message
  PathTimes(std::span<const LayerPace> layers, Seconds hop, BytesPerSecond host_link);

  std::span<const double> without_copies() const { return all().first(all().size() - kinds_); }
  std::span<const double> all() const { return seconds_; }

  /// Places in `all`.
  std::size_t forward(std::size_t kind) const { return 3 * kind; }
  std::size_t backward(std::size_t kind) const { return 3 * kind + 1; }
  std::size_t weight_gradient(std::size_t kind) const { return 3 * kind + 2; }
  std::size_t message() const { return 3 * kinds_; }
  std::size_t copy(std::size_t kind) const { return 3 * kinds_ + 1 + kind; }

 private:
  std::size_t kinds_;
  std::vector<double> seconds_;
};

/// Number of times a path leads through each of PathTimes::all().
using PathCounts = std::vector<double>;

/// Time a path takes with these times.
Seconds length_of(const PathCounts& path, std::span<const double> times);

/// The longest path of a sweep. Where a stage turns from a forward to a backward pass, with
/// activations offloaded, compute waits for a copy to the host and one back: these are counted too.
/// \param pipeline  what was swept
/// \param times     of the sweep
/// \param ends      by slot: when it ended
/// \param copies    activations were copied beside: then it is one of the longer paths
PathCounts longest_path(const PipelineTimes& pipeline, const PathTimes& times,
                        std::span<const double> ends, bool copies = false);

/// Longest paths that sweeps through one schedule have found. With other times each of them is one
/// path among many, so that no sweep is shorter than the longest of them; nearly always one of them
/// is as long.
class KnownPaths {
 public:
  /// \returns 0 while none is known
  Seconds floor(std::span<const double> times) const;
  /// Whether a sweep found a path that is longer than those known.
  bool is_news(Seconds length, std::span<const double> times) const;
  void add(PathCounts path);
  /// Changes when a path is added.
  std::size_t added() const { return added_; }

 private:
  static constexpr std::size_t kMost = 32;
  std::vector<PathCounts> paths_;
  std::size_t added_ = 0;
};

}  // namespace shardwise
