#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/program/step_program.h"
#include "planner/spec/text/units.h"
#include "simulator/traces/name_table.h"
#include "simulator/traces/trace_reader.h"

namespace shardwise::sim {

/// Operations of one name on a stage's lowest rank, whatever their micro-batch, in one step.
struct OperationSum {
  std::string name;  // "fwd.layer12", as a report has it
  std::int32_t stage = 0;
  std::int64_t count = 0;
  Seconds time;  // without waiting for the other end of a message
};

/// One run of an operation. Seconds since the step's first start.
struct OperationRun {
  double begin = 0;  // its stream turned to it
  double start = 0;  // once the other participants were there
  double end = 0;
  std::uint32_t operation = 0;  // of OperationStep::operations
  std::int32_t microbatch = -1;
  std::optional<Stream> stream;  // of a lane that our traces have
};

/// A step of a trace of ours.
struct OperationStep {
  Seconds length;  // first start to last end, of all ranks
  std::vector<OperationSum> operations;
  std::vector<OperationRun> runs;  // of each stage's lowest rank
};

/// Record of a trace of ours, simulated or measured: the operations of every rank.
/// Times are nanoseconds.
class OperationRecord {
 public:
  /// Takes one event in. \returns false when it lacks what it needs: `problem` says what
  bool add(const TraceEvent& event);
  /// A stream runs one operation at a time: where two of a lane overlap, the line of the second,
  /// and `problem` says by how much. 0 when none do.
  std::int64_t overlapping_line();
  /// The event is of a category that operations have.
  static bool is_operation(const TraceEvent& event);

  const std::string& problem() const { return problem_; }
  bool empty() const { return operations_.empty(); }
  std::size_t ranks() const { return ranks_.size(); }

  /// The steps: an operation's n-th run on a rank belongs to the n-th. \pre !empty()
  std::vector<OperationStep> steps() const;

 private:
  struct Operation {
    std::int64_t start = 0;
    std::int64_t duration = 0;
    std::int64_t waited = 0;
    std::uint32_t lane = 0;  // of lanes_
    std::uint32_t name = 0;
    std::uint32_t line = 0;  // of the file
  };
  /// A stream of a rank.
  struct Lane {
    std::int64_t process = 0;
    std::int64_t thread = 0;
    auto operator<=>(const Lane&) const = default;
  };
  std::uint32_t lane_of(const TraceEvent& event);
  std::int64_t process_of(const Operation& operation) const {
    return lanes_[operation.lane].process;
  }
  struct Rank {
    std::int64_t rank = 0;
    std::int32_t stage = 0;
  };

  /// An operation and the step that it belongs to.
  struct Numbered {
    const Operation* operation = nullptr;
    std::size_t step = 0;
  };
  std::vector<Numbered> numbered() const;
  /// The process of each stage's lowest rank, which stands for the stage.
  std::map<std::int32_t, std::int64_t> representatives() const;

  NameTable names_;
  std::vector<Operation> operations_;
  std::vector<Lane> lanes_;
  std::map<Lane, std::uint32_t> lane_numbers_;
  std::map<std::int64_t, Rank> ranks_;  // by process
  std::string problem_;
};

/// "bwd.layer12.q_proj" of "bwd.layer12.mb3.q_proj".
std::string without_microbatch(std::string_view name);

}  // namespace shardwise::sim
