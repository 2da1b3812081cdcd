#pragma once

#include <span>
#include <string>

#include "planner/spec/plan/layout.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Queues by which the streams of a rank reach its device.
struct RankQueues {
  /// Queues of the hardware, which a rank's streams share in turn, in the order of their first
  /// operations; 0: one for each stream. What is behind an operation in its queue begins once that
  /// one has begun. Source: CUDA programming guide, CUDA_DEVICE_MAX_CONNECTIONS.
  int hardware_queues = 0;
  /// Gathers and reductions of a group have one communicator, which runs them as they are issued.
  bool shared_communicator = false;
};

/// Whether the step ends on all ranks, whatever takes how long. One graph has the begin and the end
/// of every operation of every rank. An operation begins after the one before it on its stream, on
/// its communicator and in its hardware queue, and after those that it waits for. A collective or a
/// message ends once all its ranks have begun it: the n-th of a communicator on one rank is the
/// n-th on the others. The step ends where the graph has no cycle. Takes time and memory that are
/// linear in the operations of all ranks: some 200 bytes each.
///
/// Not modelled: whether the kernels of several collectives have room on a device at once.
/// \param by_rank  the program of each rank of the layout, in order; ranks may share one
/// \returns the first operations that wait for one another, or the ranks whose collectives or
/// messages differ, in one line; empty where the step ends
/// \pre check_program() finds nothing in each program
std::string check_ranks(std::span<const StageProgram* const> by_rank, const Layout& layout,
                        const RankQueues& queues = {});

/// Checks a program of all stages, whose ranks each run that of their stage. \pre a program of a
/// stage for each of the layout's
std::string check_ranks(const StepProgram& program, const Layout& layout,
                        const RankQueues& queues = {});

}  // namespace shardwise
