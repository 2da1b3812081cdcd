#include "planner/spec/json/fields.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

template <class Io, class J>
void list_job(Io& io, J& job) {
  io.integer("sequence_length", job.sequence_length, 1, kMaxSequence);
  io.integer("global_batch_size", job.global_batch_size, 0, kMaxBatch);
  io.choice("precision", job.precision);
  io.boolean("fp8_parameter_gather", job.fp8_parameter_gather);
  io.choice("fp8_recipe", job.fp8_recipe);
  io.choice("optimizer", job.optimizer);
  io.choice("adamw", job.adamw);
  io.choice("main_dtype", job.main_dtype);
  io.choice("moment_dtype", job.moment_dtype);
  io.boolean("fused_gradient_accumulation", job.fused_gradient_accumulation);
  io.boolean("reduce_scatter_with_fp32_accumulation", job.reduce_scatter_with_fp32_accumulation);
  io.boolean("calculate_per_token_loss", job.calculate_per_token_loss);
  io.choice("attention", job.attention);
  io.choice("loss", job.loss);
  io.integer("loss_chunk_rows", job.loss_chunk_rows, 0, kMaxSequence);
  io.choice("kernels", job.kernels);
  io.choice("rms_norm", job.rms_norm);
  io.boolean("repeat_key_values", job.repeat_key_values);
  io.choice("tp_overlap", job.tp_overlap);
  io.choice("expert_dispatch", job.expert_dispatch);
  io.boolean("expert_overlap", job.expert_overlap);
  io.boolean("grouped_gemm", job.grouped_gemm);
  io.boolean("cuda_graphs", job.cuda_graphs);
  io.boolean("deterministic", job.deterministic);
  io.boolean("attention_mask_in_batch", job.attention_mask_in_batch);
  io.number("dropout", job.dropout, 0, 1);
  io.boolean("frozen_base", job.frozen_base);
  io.texts("recompute_operations", job.recompute_operations);
  io.boolean("recompute_stops_early", job.recompute_stops_early);
  io.choice("saved_linear_inputs", job.saved_linear_inputs);
  io.choice("saved_activation_inputs", job.saved_activation_inputs);
  io.choice("saved_attention_outputs", job.saved_attention_outputs);
  io.number("held_back", job.held_back, 0, 1);
  io.number("expert_imbalance", job.expert_imbalance, 1, 1e6);
  io.number("expert_skew", job.expert_skew, 0, 10);
  io.integer("tokens_total", job.tokens_total, 0, 1'000'000'000'000'000'000);
  io.number("bytes_per_token_input", job.bytes_per_token_input, 0, 1e9);
}
static_assert(field_count<JobSpec>() == 37, "list the new field above");

}  // namespace

void read_fields(ObjectReader& reader, JobSpec& job) {
  FieldReader io(reader);
  list_job(io, job);
  reader.reject_unknown();
}

void write_fields(JsonWriter& json, const JobSpec& job) {
  FieldWriter io(json);
  list_job(io, job);
}

}  // namespace shardwise
