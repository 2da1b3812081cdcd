#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/space/enumerate.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// `least` micro-batches or a little more: as many fewer than `number` as whole periods have.
std::int64_t few_microbatches(const Layout& layout, std::int64_t number, std::int64_t least);

/// Key of a layout's step program, prices apart, as one number: the cut into stages,
/// the schedule, a few micro-batches, policies and placements, and which groups have more than one
/// rank. Where gradients fill buckets or queues, also the ranks that cut their elements. Layouts of
/// one model and engine with equal keys should have equal programs; programs_bench counts others.
std::uint64_t program_key(const Layout& layout, const EngineProfile& engine,
                          std::int64_t microbatches);

/// All of a program but its prices, as one number. \param costs  which operations cost the same,
/// too
std::uint64_t fingerprint(const StepProgram& program, bool costs);

/// How the layouts of a whole space share programs, by their keys.
struct SharedKeys {
  std::int64_t layouts = 0;
  std::int64_t keys = 0;
  std::int64_t alone = 0;    // layouts whose key no other has
  std::int64_t below_8 = 0;  // of fewer than 8, that one run over columns takes at once
  std::int64_t typical = 0;  // half of the layouts share their key with as many or more
};
/// \param stages  few micro-batches are so many times the stages
SharedKeys shared_keys(const std::vector<WorkItem>& items, const EngineProfile& engine,
                       std::int64_t stages);

}  // namespace shardwise
