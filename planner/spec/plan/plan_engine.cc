#include "planner/spec/json/fields.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMostBucketElements = std::int64_t{1} << 50;
constexpr std::int64_t kMostRuntimeBytes = std::int64_t{1} << 50;

template <class Io, class R>
void list_runtime(Io& io, R& r) {
  io.integer("context_bytes", r.context, 0, kMostRuntimeBytes);
  io.integer("framework_workspace_bytes", r.framework_workspace, 0, kMostRuntimeBytes);
  io.integer("engine_workspace_bytes", r.engine_workspace, 0, kMostRuntimeBytes);
  io.integer("communicator_bytes", r.communicator, 0, kMostRuntimeBytes);
  io.boolean("fp8_needs_transposes", r.fp8_needs_transposes);
  io.integer("slack_bytes", r.slack_bytes, -kMostRuntimeBytes, kMostRuntimeBytes);
  io.number("slack_share", r.slack_share, 0, 1);
  io.number("slack_states_share", r.slack_states_share, 0, 10);
  io.number("slack_least_share", r.slack_least_share, 0, 1);
  io.number("slack_most_share", r.slack_most_share, 0, 10);
  io.integer("slack_most_bytes", r.slack_most_bytes, 0, kMostRuntimeBytes);
  io.number("slack_whole_share", r.slack_whole_share, 0, 1);
  io.number("doubt_share", r.doubt_share, 0, 1);
}
static_assert(field_count<RuntimeMemory>() == 13, "list the new field above");

template <class Io, class E>
void list_engine(Io& io, E& e) {
  io.require({"name", "zero_stages"});
  io.text("name", e.name);
  io.text("label", e.label);
  io.text("variant_of", e.variant_of);
  io.integers("zero_stages", e.zero_stages, 0, 3);
  io.boolean("hybrid", e.hybrid);
  io.boolean("outer_shards_optimizer", e.outer_shards_optimizer);
  io.boolean("pipeline", e.pipeline);
  io.integers("pipeline_zero_stages", e.pipeline_zero_stages, 0, 3);
  io.choices("schedules", e.schedules);
  io.boolean("tensor_parallel", e.tensor_parallel);
  io.boolean("context_parallel", e.context_parallel);
  io.boolean("expert_parallel", e.expert_parallel);
  io.boolean("experts_split_apart", e.experts_split_apart);
  io.boolean("tied_head", e.tied_head);
  io.boolean("fp16", e.fp16);
  io.boolean("offload_optimizer", e.offload_optimizer);
  io.boolean("narrow_states", e.narrow_states);
  io.boolean("bf16_main_weights", e.bf16_main_weights);
  io.boolean("param_remainders", e.param_remainders);
  io.choice("main_weights", e.main_weights);
  io.choice("gather", e.gather);
  io.choice("gradient_buffer", e.gradient_buffer);
  io.choice("padding", e.padding);
  io.choice("kernels", e.kernels);
  io.choice("tp_overlap", e.tp_overlap);
  io.choice("loss", e.loss);
  io.choice("rms_norm", e.rms_norm);
  io.boolean("fp32_gradients_default", e.fp32_gradients_default);
  io.boolean("norms_latent_queries", e.norms_latent_queries);
  io.boolean("casts_gradients_for_optimizer", e.casts_gradients_for_optimizer);
  io.boolean("keeps_root_gathered", e.keeps_root_gathered);
  io.boolean("reshards_to_groups", e.reshards_to_groups);
  io.boolean("keeps_parts_over_step", e.keeps_parts_over_step);
  io.boolean("reduce_every_microbatch", e.reduce_every_microbatch);
  io.choice("reduce_dtype", e.reduce_dtype);
  io.boolean("fp32_accumulation", e.fp32_accumulation);
  io.integer("bucket_elements", e.bucket_elements, 0, kMostBucketElements);
  io.integer("first_bucket_elements", e.first_bucket_elements, 0, kMostBucketElements);
  io.integer("bucket_elements_per_rank", e.bucket_elements_per_rank, 0,
             kMostBucketElements / kMaxRanks);
  io.integer("pad_multiple", e.pad_multiple, 1, 1 << 30);
  io.integer("start_multiple", e.start_multiple, 1, 1 << 30);
  io.integer("vocabulary_multiple", e.vocabulary_multiple, 1, 1 << 30);
  io.integer("reduce_buffer_elements", e.reduce_buffer_elements, 0, kMostBucketElements);
  io.boolean("overlap_doubles_buffer", e.overlap_doubles_buffer);
  io.boolean("keeps_gradient_shards", e.keeps_gradient_shards);
  io.boolean("keeps_buckets", e.keeps_buckets);
  io.boolean("keeps_last_reduction", e.keeps_last_reduction);
  io.boolean("flattens_gradients", e.flattens_gradients);
  io.boolean("joins_whole_gradients", e.joins_whole_gradients);
  io.boolean("offloads_gradients", e.offloads_gradients);
  io.integer("sub_group_elements", e.sub_group_elements, 0, kMostBucketElements);
  io.integer("optimizer_scratch_bytes", e.optimizer_scratch_bytes, 0, 64);
  io.retired("gathers_ahead");
  io.boolean("overlaps_updated_gather", e.overlaps_updated_gather);
  io.integer("gather_queue_elements", e.gather_queue_elements, 0, kMostBucketElements);
  io.integer("prefetch_elements", e.prefetch_elements, 0, kMostBucketElements);
  io.integer("reduce_queue_elements", e.reduce_queue_elements, 0, kMostBucketElements);
  io.object("runtime", e.runtime, [](auto& inner, auto& runtime) { list_runtime(inner, runtime); });
  io.choice("allocator", e.allocator);
  io.boolean("lazy_moments", e.lazy_moments);
  io.boolean("whole_moments_early", e.whole_moments_early);
  io.boolean("all_gather_shares_communicator", e.all_gather_shares_communicator);
  io.texts("sources", e.sources);
}
static_assert(field_count<EngineProfile>() == 62, "list the new field above");

}  // namespace

void read_fields(ObjectReader& reader, EngineProfile& engine) {
  FieldReader io(reader);
  list_engine(io, engine);
  reader.reject_unknown();
}

void write_fields(JsonWriter& json, const EngineProfile& engine) {
  FieldWriter io(json);
  list_engine(io, engine);
}

void read_fields(ObjectReader& reader, RuntimeMemory& runtime) {
  FieldReader io(reader);
  list_runtime(io, runtime);
  reader.reject_unknown();
}

void write_fields(JsonWriter& json, const RuntimeMemory& runtime) {
  FieldWriter io(json);
  list_runtime(io, runtime);
}

}  // namespace shardwise
