#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/step/pipeline_path.h"
#include "planner/cost/step/stage_times.h"
#include "planner/cost/step/step_time.h"
#include "planner/estimate/estimate.h"
#include "planner/schedule/stages.h"
#include "planner/search/pricing/memory_pricer.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/space/enumerate.h"

namespace shardwise {

/// Who looks at the prices.
class LayoutVisitor {
 public:
  virtual ~LayoutVisitor() = default;
  /// Whether it looks at any of the layouts `first` to before `end` of the item, in the order of
  /// the enumeration: the others are neither priced nor timed.
  virtual bool wants(std::int64_t /*first*/, std::int64_t /*end*/) { return true; }
  /// Whether every layout that it wants is passed to `memory`; else, of those that cost more than
  /// the bounds, only those that may matter by the next three.
  virtual bool sees_all() const { return true; }
  /// The time from which on no layout matters, whatever memory it takes. It does not rise while an
  /// item is looked at.
  virtual Seconds limit() { return Seconds(std::numeric_limits<double>::infinity()); }
  /// Asked first. Whether a layout fits, where that is known: then it is not passed to `memory`.
  /// \param first  index of its first order
  virtual KnownFits::Fits known_fit(std::int64_t /*first*/) { return KnownFits::Fits::unknown; }
  /// Whether the orders of a layout matter that takes no less memory. \param least  without the
  /// worst stage \param first  index of the first order
  virtual bool may_matter(const MemoryPrice& /*least*/, std::int64_t /*first*/,
                          std::int64_t /*orders*/) {
    return true;
  }
  /// Once for all `orders` of a layout, none of which takes less than `floor`. \returns the time
  /// from which on they do not matter; below zero, they are not timed
  virtual Seconds memory(const Layout& layout, const MemoryPrice& price, Seconds floor,
                         std::int64_t orders) = 0;
  /// An order whose time is below what `memory` returned; `index` counts the orders of the item.
  virtual void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
                    std::int64_t index) = 0;
  /// Whether it is told a bound on the time of each order instead of its time, and how close a one.
  /// `chains` are bounds on the simulated step too: operations that its program runs one after the
  /// other, each as if it were alone. They depend on no earlier search.
  enum class Asks : std::uint8_t { times, bounds, close_bounds, chains, floors };
  virtual Asks asks() const { return Asks::times; }
  /// Where it asks for floors and nothing else: below the times of all layouts of a pipeline under
  /// a layer choice.
  virtual void floor(Seconds /*least*/) {}
  /// An order that takes no less than `least`, which is at least the `floor` of all orders.
  virtual void bound(const Layout& /*layout*/, const MemoryPrice& /*price*/, Seconds /*least*/,
                     std::int64_t /*index*/) {}
};

/// Prices every layout of a WorkItem. The answers are those of evaluate(), from the same functions;
/// what several layouts share is made once: costs of a layer per micro-batch and layer choice, sums
/// over a stage per pipeline, tables of collectives per group shape. One thread's.
class Evaluator {
 public:
  /// \param memory  what it knows to begin with, and adds to; none = nothing
  /// \pre all others outlive this
  Evaluator(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
            const EngineProfile& engine, std::shared_ptr<SearchMemory> memory = nullptr);

  /// Asked to stop, it leaves out the layouts that are left.
  void run(const WorkItem& item, LayoutVisitor& visitor, std::stop_token stop = {});

 private:
  /// Costs of layers under one LayerChoice. Those that differ in offload_activations alone share
  /// both, those that differ in fp32_gradients share memories.
  struct Layers {
    std::vector<LayerMemory> memories;
    // By place of tp, cp, ep and etp on the links, and microbatches_a_sum().
    std::map<std::pair<std::int32_t, std::int64_t>, std::vector<LayerTime>> times;
  };
  /// A mesh and an order, with what they are on the links.
  struct Place {
    const PlacedOrder* order = nullptr;
    std::int32_t layer_place = 0;  // numbers of equal shapes, from 0
    std::int32_t stage_place = 0;
    DataParallelTables groups;
  };

  PipelineStages& stages_of(const Layout& layout, std::int64_t num_microbatches);
  const std::vector<LayerMemory>& memories_of(Layers& layers, const Layout& layout);
  void place_meshes(const WorkItem& item, const WorkItem::Stretch& stretch);
  /// Every mesh, state choice and order of a pipeline under a layer choice.
  void price(const WorkItem::Stretch& stretch, PipelineStages& stages,
             const std::vector<LayerMemory>& memories, Layers& layers, Layout layout,
             LayoutVisitor& visitor);
  /// Below the time of every layout of a pipeline under a layer choice, by what its stages compute.
  Seconds floor_of_all(const WorkItem::Stretch& stretch, const PipelineStages& stages,
                       Layers& layers, const Layout& layout);
  /// Floor with the communication inside layers.
  Seconds stream_floor_of_all(const WorkItem::Stretch& stretch, const PipelineStages& stages,
                              Layers& layers, const Layout& layout);
  /// Has memories_ at the layers of a pipeline.
  void start_memory(PipelineStages& stages, const std::vector<LayerMemory>& memories);
  /// A mesh, states and an order of a pipeline under a layer choice.
  struct Leaf {
    const PipelineStages& stages;
    const std::vector<LayerMemory>& memories;
    Layers& layers;
    const Place& place;
    LeafContext context;
    std::size_t number = 0;  // among those of the pipeline and the layer choice
    std::int64_t microbatches_a_sum = 1;
  };
  const std::vector<LayerTime>& layer_times_of(Layers& layers, const Place& place,
                                               const Layout& layout,
                                               std::int64_t microbatches_a_sum);
  const std::vector<LayerTime>& layer_times_of(const Leaf& leaf) {
    return layer_times_of(leaf.layers, leaf.place, *leaf.context.layout, leaf.microbatches_a_sum);
  }
  /// Whether a bound shows that a step takes more than `limit`, or it is asked to stop.
  bool is_above(Seconds limit, Seconds least) const;
  /// Compares as above by all bounds that are found without its schedule.
  bool is_too_slow(Seconds limit, const Leaf& leaf);
  /// Time of a step, or kTooSlow as soon as a bound shows that it is above `limit`, or when it is
  /// asked to stop. \pre not is_too_slow() by what was the limit before
  Seconds time_within(Seconds limit, const Leaf& leaf);
  static constexpr Seconds kTooSlow = Seconds(std::numeric_limits<double>::infinity());
  /// Sums of the same parts in another order differ in their last bits.
  static constexpr double kLessRounding = 1 - 1e-9;
  /// KnownPaths::floor() while so many had been added.
  struct KnownFloor {
    Seconds length;
    std::size_t added = 0;
  };
  /// Times of a pipeline under a layer choice, where its groups lie in one way on the links.
  struct Timed {
    Seconds floor;                           // stream_floor()
    bool summed = false;                     // sum_up() has made the next three
    StageTimes stages;                       // `pipeline` by run_of()
    std::size_t states = 0;                  // number of those that hold the same elements
    Seconds straggler;                       // what the slowest GPU takes longer, at least
    std::optional<PathTimes> paths;          // made by path_times_of()
    std::array<KnownFloor, 2> known;         // without and with copies to the host
    std::optional<PipelineStep> step;        // made for the first layout that its run leaves
    std::optional<StreamedPasses> streamed;  // where activations are offloaded and nothing else is
  };
  /// Below the time of a step, whatever hides behind compute: found without its schedule.
  Seconds least_time(const Leaf& leaf);
  /// Bound by all bounds that are found without its schedule.
  Seconds close_bound(const Leaf& leaf);
  /// Least time, and the longest way through the schedule of a pipeline.
  Seconds chain_bound(const Leaf& leaf);
  /// The slots of its schedule. \returns false where it is asked to stop
  bool make_slots(const Leaf& leaf);
  /// Time of a leaf beside the passes of its pipeline.
  struct Beside {
    const StateTimes* states = nullptr;
    Seconds carried;  // copies of activations to the host and back
    Seconds updated;  // the optimizer
  };
  /// \pre sum_up()
  Beside beside(const Timed& timed, const Leaf& leaf);
  Timed& timed_of(const Leaf& leaf);
  /// \returns `timed`, summed up
  Timed& sum_up(Timed& timed, const Leaf& leaf);
  /// A path that is news, for this search and later ones.
  void learn(const Leaf& leaf, PathCounts path);
  /// \pre sum_up()
  const PathTimes& path_times_of(Timed& timed, const Leaf& leaf);
  /// Below its run, or, with copies to the host, below its streamed passes: of paths that sweeps
  /// through its schedule have found. \pre as before
  Seconds known_floor(Timed& timed, const Leaf& leaf, bool copies);
  /// Below its passes with parameters and gradients that move layer by layer beside them. \pre as
  /// before, and reduces_by_unit()
  Seconds moved_floor(Timed& timed, const Leaf& leaf);
  /// The first time it sweeps through the schedule, whose slots are made. \pre as before
  const PipelineRun& run_of(Timed& timed, const Leaf& leaf);
  /// \pre of a pipeline there is a run
  const PipelineStep& step_of(Timed& timed, const LeafContext& context);
  /// Streamed passes of a leaf. \pre only_offloads()
  const StreamedPasses& streamed_of(Timed& timed, const Leaf& leaf, const PipelineStep& step);
  /// Time to move and update one combination of elements, over a stretch.
  struct MovedStates {
    StageTimes stages;
    bool sequence_parallel = false;
    bool fp32_gradients = false;
    std::vector<std::optional<StateTimes>> times;  // by mesh, state and order
  };
  std::size_t number_states(const StageTimes& stages, const Layout& layout);

  const ModelSpec& model_;
  const ClusterSpec& cluster_;
  const JobSpec& job_;
  const EngineProfile& engine_;
  MemoryRules memory_rules_;
  TimeRules time_rules_;
  bool sums_microbatches_ = false;  // microbatches_a_sum() is not always 1
  MemoryPricer memories_;
  std::shared_ptr<SearchMemory> memory_;
  SearchMemory::BorrowedTables tables_;
  GroupShape world_;  // all ranks
  std::map<std::tuple<std::int32_t, std::int32_t, PipelineSchedule, std::int32_t, std::int32_t,
                      std::int64_t>,
           PipelineStages>
      stages_;
  // State of the item in work.
  std::stop_token stop_;
  std::int64_t index_ = 0;                               // of its next layout
  std::vector<std::array<GroupShape, 4>> layer_shapes_;  // tp, cp, ep, etp
  std::vector<GroupShape> hop_shapes_;
  std::vector<std::pair<std::int32_t, std::int32_t>> stage_shapes_;
  // State of the stretch in work.
  std::vector<std::vector<Place>> places_;  // by mesh, then order
  std::size_t leaves_ = 0;                  // of a pipeline and a layer choice
  std::vector<MovedStates> states_;
  std::int64_t num_microbatches_ = 1;
  // State of the pipeline and layer choice in work.
  bool memory_started_ = false;  // that of its layers
  Layout with_memory_;           // of the first choice that has the same memories
  std::map<std::pair<std::int32_t, std::int64_t>, Timed> timed_;  // by stage_place, and as times
  SlotEnds ends_;                                                 // of the last sweep
};

}  // namespace shardwise
