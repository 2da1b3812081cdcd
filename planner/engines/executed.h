#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// A field of a layout that searches hold at one value where our executor trains.
struct ExecutedField {
  std::string_view key;
  std::string_view value;
  std::string_view hint;  // what runs instead of another value
  bool only = true;       // it runs no other value; of the rest some do, as a plan asks for them
};

/// What `shardwise run` executes of a layout: every combination of data parallelism, and pipelines
/// or tensor parallelism where a plan has them. The one list for the executor's refusals, for
/// searches where it trains and for `shardwise list engines`.
std::span<const ExecutedField> executed_fields();

/// Engines whose rules of gathers and reductions the executor follows.
std::span<const std::string_view> executed_engines();

/// Whether our executor is what trains on these machines: they are CPUs.
bool executor_trains_on(const ClusterSpec& cluster);

/// The executed fields that a search holds at their value: all but those that `locks` and `opened`
/// name.
std::vector<ExecutedField> executed_fields_besides(
    const std::vector<std::pair<std::string, std::string>>& locks,
    const std::vector<std::string>& opened);

}  // namespace shardwise
