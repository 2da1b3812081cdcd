#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/spec/program/step_program.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// The operations of a stage that come again with every period of micro-batches: those from `begin`
/// to before `end`, `length` a period. Two of them that are `length` apart are alike: same role,
/// stream, layer and cost, same peer, and they wait for operations as far before them, or both for
/// one before `begin`. A step of more periods has more of them and is the same before and after.
struct RepeatedPart {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t length = 0;
};

/// The repeated part of each stage of `few`, found beside `more`, a step of one period more.
/// Nothing where the two differ in anything else, where stages meet in it but for messages, or
/// where a stage receives messages in another order than they are sent in.
std::optional<std::vector<RepeatedPart>> repeated_parts(const StepProgram& few,
                                                        const Prices& few_prices,
                                                        const StepProgram& more,
                                                        const Prices& more_prices);

}  // namespace shardwise::sim
