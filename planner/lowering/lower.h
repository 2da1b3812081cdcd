#pragma once

#include <cstdint>

#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Which step of a run a program is of.
enum class StepKind : std::uint8_t {
  steady,  // any but the first
  first,   // Megatron DDP learns the order of its gradients and overlaps nothing; lazy moments
           // appear; parameters are whole, so none are gathered for it
};

/// Program of every rank of each pipeline stage in one step of `plan`: operations with streams,
/// dependencies, buffers and costs. The rules of schedules, prefetching and what is freed when
/// stand here; the step-time model and the ledger repeat some of them. Pure: equal plans give equal
/// programs. docs/step_program.md.
/// \pre check_layout has no diagnostics for the plan's layout
StepProgram lower(const Plan& plan, Granularity granularity = Granularity::layer,
                  StepKind step = StepKind::steady);

/// Operations with streams, dependencies and costs, without buffers and the plan's digest:
/// enough for when they run, and faster.
/// \param num_microbatches  of the step, each of which costs what one of the plan's does; 0: all
/// \pre as lower()
StepProgram lower_without_buffers(const Plan& plan, Granularity granularity = Granularity::layer,
                                  std::int64_t num_microbatches = 0);

/// A program of more operations than this is not made: it would take some GB of memory.
inline constexpr std::int64_t kMostOperations = 10'000'000;

/// Operations of lower(), of all stages, without making them: what a period of micro-batches adds
/// is taken from programs of few. As \pre there.
std::int64_t count_operations(const Plan& plan, Granularity granularity = Granularity::layer);

/// Names what is wrong where a program would have more than kMostOperations: its global batch.
Diagnostics too_many_operations(const Plan& plan, Granularity granularity = Granularity::layer);

}  // namespace shardwise
