#pragma once

// A plan trained on fake GPUs: the whole trainer, the device, its runner and graphs, NCCL's world
// or that of ranks on one GPU, and the CPU's kernels on the fake's streams.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/engine/trainer.h"
#include "executor/recorder/rank_record.h"
#include "planner/spec/plan/plan.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {

/// How ranks move tensors.
enum class Moves : std::uint8_t { nccl, loopback };
/// Fate of a step after the first three.
enum class Steps : std::uint8_t {
  recorded,    // every operation between events that tell the time
  issued,      // one by one
  graph,       // a graph's launch
  as_trained,  // a graph's launch, but recorded where a run with a report records
};

/// Defect of a rank, which tests must find. In steps that are not recorded.
struct Defect {
  static constexpr int kEveryRank = -2;
  int rank = -1;  // none
  /// Number of the wait of a stream for an event, in step `step`, that does nothing; -1: none.
  int forgotten_wait = -1;
  std::int64_t step = 1;
  // NOLINTBEGIN(readability-redundant-member-init): GCC asks for it
  /// Changes the programs that the runner is given …
  std::function<void(StageProgram& program)> program = {};
  /// … or the kernels of a program's operations.
  std::function<void(const StageProgram& program, OpKernels& kernels)> kernels = {};
  /// Operations in place of the rank's.
  std::function<std::unique_ptr<Compute>()> compute = {};
  // NOLINTEND(readability-redundant-member-init)
};

struct GpuJob {
  Moves moves = Moves::nccl;
  Steps steps = Steps::issued;
  std::uint64_t seed = 1;     // of the order in which streams run
  bool layers_issue = false;  // operations themselves, unlike stand-ins, each a kernel on a stream
  Defect defect = {};
};

/// Results of a run, and what the fakes say of it.
struct GpuRun {
  Curve curve;
  std::string why;                      // it failed; empty when it did not
  std::vector<std::string> complaints;  // of CUDA and NCCL
  std::string left_over;
  std::vector<std::int64_t> arena_bytes;  // by rank
  std::int64_t device_bytes = 0;          // taken by all ranks while they train
  std::int64_t at_once = 0;  // most that rank 0 has when operations run one after the other
  RankRecord record;         // of rank 0; of recorded steps
  int waits = 0;             // of the rank with the defect, in its step
  bool graphs = false;       // every rank's last step was a graph's launch
};
/// \param plan  for a cluster of GPUs  \param kernels  of its layers, as the CPU runs them
GpuRun train_on_gpus(const Plan& plan, std::int64_t steps, const GpuJob& job,
                     const LayerKernels& kernels);

/// The plan for as many GPUs.
Plan on_gpus(Plan plan);

}  // namespace shardwise::exec::test
