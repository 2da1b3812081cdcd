#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/program/step_program.h"

namespace shardwise::sim {

/// Kind of a piece of a device's work, by any recorder.
enum class WorkKind : std::uint8_t {
  gemm,
  attention,
  memory_bound,
  layer,  // a whole pass: what a step program at granularity `layer` has
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  send_recv,
  other_collective,  // broadcast, reduce, barrier
  copy,              // between host and device, or devices, by copy engines
};
inline constexpr std::size_t kWorkKinds = 11;

/// When in the step. What is computed again counts as backward: a profiler sees it there.
enum class StepPhase : std::uint8_t { forward, backward, optimizer, unknown };
inline constexpr std::size_t kStepPhases = 4;

std::string_view name_of(WorkKind kind);
std::string_view name_of(StepPhase phase);

/// Keeps multiprocessors busy; the others move bytes.
constexpr bool computes(WorkKind kind) { return kind <= WorkKind::layer; }

/// ASCII letters in lower case, as names of kernels are searched.
std::string lower(std::string_view text);

/// The kind of a kernel by its name, as NCCL, cuBLAS, CUTLASS, cuDNN, FlashAttention, Triton,
/// PyTorch, RCCL, Tensile and AOTriton name theirs. What has no other kind's word in its name is
/// memory_bound.
WorkKind kind_of_kernel(std::string_view name);

/// The kind of a copy or fill: within the device it is memory_bound, else copy. "Memcpy DtoD
/// (Device -> Device)", "Memset (Device)".
WorkKind kind_of_copy(std::string_view name);

/// The kind of what PyTorch calls a collective, "_allgather_base" and "nccl:all_gather" alike.
/// NCCL's kernels for messages and for all-to-all have one name, so this goes before theirs.
WorkKind kind_of_collective(std::string_view name);

/// Kind of an operation of a step program. \pre the operation is one of the stage
WorkKind kind_of(const StageProgram& stage, const ProgramOp& op);
StepPhase phase_of(const ProgramOp& op);

}  // namespace shardwise::sim
