#pragma once

#include "planner/score/row.h"
#include "planner/score/row_engine.h"
#include "planner/spec/plan/job_spec.h"

namespace shardwise {

/// The loss that a row's program computes: as stated, else that of its training system.
LossKernel row_loss(const Row& row, const RowEngine& engine);

/// What PyTorch's programs choose besides: norms, repeated keys and values, the kernels of AdamW
/// and of attention, the kind of activation checkpointing.
void read_pytorch(const Row& row, const RowEngine& engine, JobSpec& job);

}  // namespace shardwise
