#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/cost/collectives/collective_table.h"
#include "planner/cost/step/pipeline_path.h"
#include "planner/schedule/pipeline_slots.h"
#include "planner/schedule/stages.h"
#include "planner/search/pricing/known_fits.h"
#include "planner/search/space/shape_cache.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

struct SearchRequest;

/// Whether layouts are of one task of a search.
bool same_task(const Layout& a, const Layout& b);

/// One schedule of a pipeline, and the longest paths that sweeps through it have found. Several
/// threads may use it.
class KnownSchedule {
 public:
  /// Made by the first who asks.
  std::shared_ptr<const PipelineSlots> slots(const Layout& layout, std::int64_t num_microbatches,
                                             bool planned_buffers);
  /// How often a path goes through a layer of each kind says nothing where the kinds lie elsewhere.
  /// \param stages  what each stage holds, of as many kinds as there are times
  KnownPaths paths(std::span<const StageLayers> stages, std::size_t kinds) const;
  void add(std::span<const StageLayers> stages, std::size_t kinds, const PathCounts& path);
  /// 0 while they are not made.
  std::size_t slot_count() const { return slot_count_; }

 private:
  struct Paths {
    std::vector<StageLayers> stages;
    std::size_t kinds = 0;
    KnownPaths known;
  };
  /// Place in `paths_`; its size where there are none.
  std::size_t place_of(std::span<const StageLayers> stages, std::size_t kinds) const;

  std::mutex making_;
  std::shared_ptr<const PipelineSlots> slots_;
  std::atomic<std::size_t> slot_count_ = 0;
  mutable std::mutex mutex_;
  std::vector<Paths> paths_;
};

/// Where groups lie on the links of a cluster, and what collectives take there. One thread's.
struct ClusterTables {
  explicit ClusterTables(const ClusterSpec& of) : cluster(of), shapes(cluster), tables(cluster) {}
  ClusterTables(const ClusterTables&) = delete;
  ClusterTables& operator=(const ClusterTables&) = delete;

  ClusterSpec cluster;
  ShapeCache shapes;
  CollectiveTables tables;
};

/// Results of a search that the next one can use, whatever it asks: schedules (of any model and
/// engine), their longest paths (of models with the same layers), tables of collectives (of
/// clusters with the same links, of any size). It spares work and changes no answer. Several
/// threads and searches may share one.
class SearchMemory : public std::enable_shared_from_this<SearchMemory> {
 public:
  std::shared_ptr<KnownSchedule> schedule(const Layout& layout, std::int64_t num_microbatches,
                                          bool planned_buffers);

  /// The best layout of a search. The next one looks first at layouts of the same tp, cp, ep, etp
  /// and micro-batch.
  void keep_best(const Layout& best);
  /// Those of searches before, the last one first; no two alike in these.
  std::vector<Layout> last_best() const;

  /// Fits that searches found of these layouts, or nothing yet. Nobody else has it until
  /// give_back(). \pre request.counted is false
  std::unique_ptr<KnownFits> borrow_fits(const SearchRequest& request);
  void give_back(std::unique_ptr<KnownFits> fits);

  /// Gives tables back to the memory that they were borrowed from.
  struct GiveBack {
    std::shared_ptr<SearchMemory> memory;
    void operator()(ClusterTables* tables) const;
  };
  using BorrowedTables = std::unique_ptr<ClusterTables, GiveBack>;
  /// Tables that no one else has now. \pre this is held by a shared_ptr
  BorrowedTables borrow(const ClusterSpec& cluster);

 private:
  /// Passes and messages of all schedules together: of more, those asked for longest ago go.
  static constexpr std::size_t kMostSlots = std::size_t{8} << 20;  // 44 bytes each
  static constexpr std::size_t kMostTables = 16;
  static constexpr std::size_t kMostBest = 8;
  static constexpr std::size_t kMostFits = 8;  // a byte for each layout

  using Key = std::tuple<std::int32_t, std::int32_t, PipelineSchedule, std::int64_t, bool>;
  using Schedules = std::list<std::pair<Key, std::shared_ptr<KnownSchedule>>>;
  void drop_the_oldest();

  mutable std::mutex mutex_;
  std::vector<Layout> best_;                    // the last one first
  std::list<std::unique_ptr<KnownFits>> fits_;  // that nobody has, the last given back first
  Schedules schedules_;                         // the last asked for first
  std::map<Key, Schedules::iterator> places_;
  std::list<std::unique_ptr<ClusterTables>> tables_;  // that nobody has, the last given back first
};

}  // namespace shardwise
