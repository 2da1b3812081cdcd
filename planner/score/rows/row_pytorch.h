#pragma once

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_engine.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Bytes that a system's training metrics move after each micro-batch of so many logits: Composer's
/// take two cross-entropies of them, unless told otherwise.
/// Source: mosaicml/llm-foundry@51652eae:llmfoundry/models/mpt/modeling_mpt.py, train_metrics;
/// mosaicml/composer:composer/metrics/nlp.py, LanguageCrossEntropy.
double metrics_bytes(const Row& row, double logits);

/// The loss that a row's program computes: as stated, else that of its training system.
LossKernel row_loss(const Row& row, const RowEngine& engine);

/// Reads further choices of PyTorch's programs: norms, repeated keys and values, the kernels of
/// AdamW and of attention, the kind of activation checkpointing.
void read_pytorch(const Row& row, const RowEngine& engine, JobSpec& job);

/// Says adapters that share FSDP units with the frozen weights beside them as what their memory is:
/// training of all weights without moments.
void read_shared_units(const Row& row, JobSpec& job, Layout& layout, Notes& notes);

}  // namespace shardwise
