#pragma once

#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/lowering/checks/check_program.h"
#include "planner/lowering/lower.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan.h"
#include "tests/support/models.h"

namespace shardwise::test {

/// A small Llama on H100 nodes; engine, layout and micro-batches are the test's.
inline Plan small_plan(const EngineProfile& engine, const Layout& layout,
                       std::int64_t num_microbatches, std::int64_t layers = 8) {
  Plan plan;
  plan.model = llama(layers, 512, 1408, 8, 4, 32000);
  plan.engine = engine;
  plan.layout = layout;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), layout.world());
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = layout.dp() * layout.micro_batch_size * num_microbatches;
  return plan;
}

/// Everything a program's checker finds, in one text.
inline std::string problems_of(const StepProgram& program) {
  std::string text;
  for (const std::string& problem : check_program(program)) text += problem + "\n";
  return text;
}

/// Bytes that one rank of a stage hands to collectives of a role over a step, full buffers.
inline std::int64_t wire_bytes(const StageProgram& stage, OpRole role) {
  std::int64_t sum = 0;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != role) continue;
    for (const CollectiveWork& work : stage.costs[static_cast<std::size_t>(op.cost)].collectives) {
      sum += work.bytes;
    }
  }
  return sum;
}

}  // namespace shardwise::test
