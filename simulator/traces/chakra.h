#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/proto_message.h"

namespace shardwise::sim {

/// A step as MLCommons Chakra execution traces, which network simulators replay: of each rank a
/// graph of nodes, those of compute with the time they take alone, those of communication with
/// their bytes, and what each waits for, the order of its stream included. docs/formats.md, "Chakra
/// traces". Equal simulations give equal bytes.
/// Source: mlcommons/chakra@6dc63e14:schema/protobuf/et_def.proto; attributes as read by
/// src/feeder/et_feeder_node.cpp.
class ChakraTraces {
 public:
  /// \param simulation  of `plan`; both outlive the object
  ChakraTraces(const Plan& plan, const Simulation& simulation);

  /// Trace of one rank: a GlobalMetadata and its nodes, each after its length. \pre 0 <= rank <
  /// plan.layout.world()
  std::string of_rank(std::int64_t rank);

  /// The groups of all ranks asked for so far, as JSON: number, as `pg_name` has it, to ranks.
  std::string groups() const;

 private:
  /// Stages at the two ends of a message.
  struct Ends {
    std::size_t sender = 0;
    std::size_t receiver = 0;
  };

  /// Who talks in an operation of a rank.
  std::vector<std::int64_t> members(const CollectiveWork& work, std::int64_t rank) const;
  void add_collective(ProtoMessage& node, const CollectiveWork& work,
                      const std::vector<std::int64_t>& ranks);

  const Plan& plan_;
  const Simulation& simulation_;
  std::map<std::int32_t, Ends> messages_;
  std::map<std::vector<std::int64_t>, std::int64_t> groups_;  // numbered from 1
};

}  // namespace shardwise::sim
