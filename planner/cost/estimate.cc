#include "planner/cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planner/cost/explain.h"
#include "planner/cost/flops.h"
#include "planner/cost/gpu_hour_price.h"
#include "planner/cost/memory.h"
#include "planner/cost/stages.h"
#include "planner/cost/step_time.h"
#include "planner/spec/format.h"

namespace shardwise {
namespace {

/// Everything that is summed once for a layout, from nothing.
struct Built {
  explicit Built(const ClusterSpec& cluster) : tables(cluster) {}

  std::vector<StageLayers> stages;
  std::vector<LayerMemory> memories;
  std::vector<LayerTime> times;
  StageTimes stage_times;
  CollectiveTables tables;
  DataParallelTables groups;  // in `tables`
  TimeRules time_rules;
  MemoryRules memory_rules;
  std::int64_t num_microbatches = 1;
  std::int64_t batch = 1;
};

Built build(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
            const EngineProfile& engine, const Layout& layout) {
  Built b(cluster);
  b.batch = job.batch_for(layout.dp(), layout.micro_batch_size);
  b.num_microbatches = std::max<std::int64_t>(1, b.batch / (layout.dp() * layout.micro_batch_size));
  b.stages = assign_stages(model, layout);
  b.memories = layer_memories(model, job, engine, layout);
  b.times = layer_times(model, job, engine, cluster, layout);
  b.groups =
      data_parallel_tables(b.tables, cluster, layout,
                           {model.num_experts > 0, job.reduce_scatter_with_fp32_accumulation});
  b.time_rules = time_rules(job, engine, cluster);
  b.stage_times = stage_times(model, job, b.time_rules, layout, b.times, b.memories, b.stages,
                              b.num_microbatches);
  b.memory_rules = memory_rules_on(cluster.gpu, model, job, engine);
  return b;
}

LeafContext leaf_context(const Built& b, const Layout& layout) {
  return {&b.time_rules, &layout, &b.groups, b.num_microbatches};
}

void fill_memory(StepReport& report, const Built& b, const ModelSpec& model,
                 const ClusterSpec& cluster, const JobSpec& job, const Layout& layout) {
  Verdict& v = report.verdict;
  v.usable = Bytes(static_cast<std::int64_t>(static_cast<double>(cluster.gpu.hbm_bytes.value()) *
                                             (1 - job.held_back)));
  for (std::size_t s = 0; s < b.stages.size(); ++s) {
    const StageParts parts = stage_parts(model, b.memories, b.stages[s]);
    const StageContext context = {&b.memory_rules, &layout, static_cast<std::int32_t>(s),
                                  b.num_microbatches};
    const StageMemory memory = stage_memory(parts, context);
    const Bytes upper = memory.peak_total() + memory_doubt(memory, parts, context).total();
    v.upper = std::max(v.upper, upper);
    if (s == 0 || memory.peak_total() > v.point) {
      v.point = memory.peak_total();
      v.worst_stage = static_cast<int>(s);
      v.worst_phase = memory.peak_phase();
    }
    report.stages.push_back(memory);
    report.stage_upper.push_back(upper);
  }
  v.fit = fit_of(v.point, v.upper, v.usable);
}

void fill_communication(StepReport& report, const Built& b, const StepDetail& detail) {
  const StageTime& stage = b.stage_times.slowest;
  const auto m = static_cast<double>(b.num_microbatches);
  const TimeParts& t = report.time;
  PassTime all = stage.forward;
  all += stage.backward;
  all += stage.recompute;
  report.compute = {m * all.gemm, m * all.attention, m * all.memory_bound};
  const auto axis = [&](const char* name, Seconds total, Seconds exposed) {
    if (total > Seconds(0)) report.by_axis.push_back({name, total, exposed});
  };
  axis("tp", m * (all.tp + all.tp_hidden), t.tp_exposed);
  axis("cp", m * (all.cp + all.cp_hidden), t.cp_exposed);
  axis("ep", m * all.ep, t.ep_exposed);
  axis("pp", detail.messages, t.pp_exposed);
  axis("offload", detail.copied, t.offload_exposed);
  axis("dp", detail.gather + detail.reduce + detail.copies, t.dp_exposed);
}

void fill_rates(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                const JobSpec& job, const Layout& layout, const Built& b) {
  const ModelFlops flops = model_flops(model, job);
  const auto world = static_cast<double>(layout.world());
  const auto sequences = static_cast<double>(b.batch);
  const Seconds step = report.step_time;
  const double peak = world * cluster.gpu.peak(job.precision).value() * step.value();
  report.model_flops = sequences * flops.causal;
  report.flops_formula = fmt::format(
      "{} x {}{} weights in matrix products x {} tokens + 3 x attention, causal half, over {} of "
      "{}",
      flops.times, job.frozen_base ? "frozen " : "", format_scaled(flops.weights),
      job.sequence_length, name_of(job.precision),
      format_flops_rate(cluster.gpu.peak(job.precision)));
  if (peak > 0) {
    report.mfu = report.model_flops.value() / peak;
    report.mfu_non_causal = sequences * flops.whole.value() / peak;
    // The slowest stage stands for all: its share of recompute is the pipeline's.
    const StageTime& stage = b.stage_times.slowest;
    const double products = stage.forward.flops.value() + stage.backward.flops.value();
    const double again = products > 0 ? stage.recompute.flops.value() / products : 0;
    report.hfu = report.mfu * (1 + again);
  }
  const double tokens = sequences * static_cast<double>(job.sequence_length);
  report.tokens_per_s = tokens / step.value();
  report.tokens_per_s_per_gpu = report.tokens_per_s / world;
  const std::optional<double> price = gpu_hour_price(cluster);
  if (price) report.dollars_per_1e9_tokens = *price * world * 1e9 / (3600 * report.tokens_per_s);
  if (cluster.gpu.tdp_watts > 0) {
    const double node = cluster.node_watts / static_cast<double>(cluster.gpus_per_node);
    report.joules_per_token = (cluster.gpu.tdp_watts + node) / report.tokens_per_s_per_gpu;
  }
}

void fill_checkpoint(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                     const Layout& layout, const Built& b) {
  // Main weights and moments; the compute weights are a cast of them.
  const MemoryRules& rules = b.memory_rules;
  const std::int64_t each = std::max(rules.main_bytes, rules.weight_bytes) + rules.moment_bytes;
  report.checkpoint_bytes = Bytes(model.parameter_count() * each);
  if (cluster.storage_write.value() > 0) {
    const auto nodes = static_cast<double>(ceil_div(layout.world(), cluster.gpus_per_node));
    report.checkpoint_write = (report.checkpoint_bytes / cluster.storage_write) / nodes;
  }
}

}  // namespace

Fit fit_of(Bytes point, Bytes upper, Bytes usable) {
  return upper <= usable ? Fit::fits : point <= usable ? Fit::at_risk : Fit::does_not_fit;
}

Evaluation evaluate(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout) {
  const Built b = build(model, cluster, job, engine, layout);
  Evaluation result;
  for (std::size_t s = 0; s < b.stages.size(); ++s) {
    const StageParts parts = stage_parts(model, b.memories, b.stages[s]);
    const StageContext context = {&b.memory_rules, &layout, static_cast<std::int32_t>(s),
                                  b.num_microbatches};
    const StageMemory memory = stage_memory(parts, context);
    const Bytes upper = memory.peak_total() + memory_doubt(memory, parts, context).total();
    result.upper = std::max(result.upper, upper);
    result.point = std::max(result.point, memory.peak_total());
  }
  result.step_time = step_time(b.stage_times, leaf_context(b, layout)).total();
  return result;
}

StepReport estimate(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout, Detail detail) {
  const Built b = build(model, cluster, job, engine, layout);
  StepReport report;
  report.model = model.name;
  report.cluster = cluster.name;
  report.engine = engine.name;
  report.layout = layout;
  report.global_batch_size = b.batch;
  report.sequence_length = job.sequence_length;
  report.num_microbatches = b.num_microbatches;
  fill_memory(report, b, model, cluster, job, layout);

  StepDetail found;
  const LeafContext context = leaf_context(b, layout);
  report.time = step_time(b.stage_times, context, &found);
  report.step_time = report.time.total();
  fill_communication(report, b, found);
  fill_rates(report, model, cluster, job, layout, b);
  fill_checkpoint(report, model, cluster, layout, b);
  add_assumptions(report, model, cluster, job, engine);
  assume_job(report, model, cluster, job, layout, found);
  if (detail == Detail::explained) {
    explain_memory(report, {model, job, engine, layout, b.memories, b.stages, b.memory_rules,
                            b.num_microbatches});
    explain_time(report, {model, cluster, job, engine, layout, b.times, b.stages, b.stage_times,
                          context, found});
    for (const LayerSpec& layer : model.kinds) {
      layer_time(model, layer, job, engine, cluster, layout, &report.gemms);
    }
    explain_gemms(report, cluster.gpu);
  }
  return report;
}

}  // namespace shardwise
