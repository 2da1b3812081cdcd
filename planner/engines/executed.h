#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// A field of a layout of which our executor runs one value.
struct ExecutedField {
  std::string_view key;
  std::string_view value;
  std::string_view hint;  // what runs instead of another value
};

/// Fields of a layout that `shardwise run` executes besides data, tensor and pipeline parallelism.
/// With executed_schedules(), no_pipeline() and no_tensor_parallelism() the one list for the
/// executor's refusals, for searches where it trains and for `shardwise list engines`.
std::span<const ExecutedField> executed_fields();

/// Schedules of the pipelines that it runs, and whether one of them is of a layout.
std::span<const PipelineSchedule> executed_schedules();
bool executes_schedule(const Layout& layout);

/// Whether it runs pipelines and tensor parallelism by the rules of the engine, on CPUs.
bool executes_pipelines(const EngineProfile& engine);

/// Why it does not run a degree of an axis there.
struct NoDegree {
  std::string path;   // what of the plan is in the way: "/layout/pp"
  std::string value;  // "2 of engine fsdp2"
  std::string hint;   // what runs
};
/// Of so many stages. Empty where it runs them.
std::vector<NoDegree> no_pipeline(const ClusterSpec& cluster, const EngineProfile& engine,
                                  std::int64_t pp);
/// Of layers that so many ranks share. Empty where it runs them, as for one.
std::vector<NoDegree> no_tensor_parallelism(const ClusterSpec& cluster, const EngineProfile& engine,
                                            std::int64_t tp);

/// Engines whose rules of gathers and reductions the executor follows.
std::span<const std::string_view> executed_engines();

/// Whether our executor is what trains on these machines: they are CPUs.
bool executor_trains_on(const ClusterSpec& cluster);

/// A field and the values with which it is searched.
struct HeldField {
  std::string_view key;
  std::vector<std::string> values;
  friend bool operator==(const HeldField&, const HeldField&) = default;
};
/// Fields held in a search for layouts that run: all but those that `locks` and `opened` name.
std::vector<HeldField> held_to_executed(
    const ClusterSpec& cluster, const EngineProfile& engine,
    const std::vector<std::pair<std::string, std::string>>& locks,
    const std::vector<std::string>& opened);

}  // namespace shardwise
