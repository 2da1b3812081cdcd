#pragma once

#include "planner/export/framework/conditions.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Facts of a plan by name:
/// - each field of its layout and of its job, as their flags take them;
/// - engine, model, gpus, gpus_per_node, nodes;
/// - what follows from them: dp, tp_cp (their product), ranks_per_shard (tp x cp x dp_replicate,
///   the ranks of a stage for each of dp_shard), num_microbatches, batch_per_rank (sequences of a
///   step on a data-parallel rank), local_batch (those of one pass through the pipeline, or of a
///   micro-batch without one), chunked (vpp above 1), layers_per_chunk, recompute_kind (full,
///   modules or none) and recompute_modules (Megatron-Core's, "other" where the operations are none
///   of them); stage_layout, a text of all stages, where write_stage_layout() has one;
/// - model_facts().
Values facts_of(const Plan& plan);

/// Facts of a model's architecture, as frameworks ask for them: "model.hidden_size", "model.norm" …
/// "model.type" is Hugging Face's model_type. "model.block" is "llama" where its blocks norm before
/// attention and before the feed-forward, and both are added one after the other: what Megatron-LM
/// and torchtitan have; else "other". "model.selective_operations" is what torchtitan's selective
/// checkpointing runs again, with commas between. norm_epsilon, activation, rope_theta,
/// rope_scaling and rope_factor are there where "model.numerics_known" is true.
Values model_facts(const ModelSpec& model);

/// The plan with an engine that reduces gradients in the type which the plan states. Of engines
/// that copy gradients into their collective that is a number of the engine: fp32 of FSDP's, unless
/// the plan keeps gradients in 16 bits.
Plan with_stated_reductions(Plan plan);

/// The plan with the layout's, the job's and the engine's fields as the facts have them,
/// and with_stated_reductions(). \returns it, or every reason why it cannot run
Result<Plan> plan_of(const Plan& plan, const Values& facts);

}  // namespace shardwise
