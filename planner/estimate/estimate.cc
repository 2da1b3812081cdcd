#include "planner/estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/cost/kernels/flops.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/step/step_time.h"
#include "planner/estimate/explain.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/estimate/step_memory.h"
#include "planner/schedule/stages.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// Everything that is summed once for a layout, from nothing.
struct Built {
  explicit Built(const ClusterSpec& cluster) : tables(cluster) {}

  MemoryCosts memory;
  std::vector<LayerTime> times;
  StageTimes stage_times;
  CollectiveTables tables;
  DataParallelTables groups;  // in `tables`
  TimeRules time_rules;
  std::int64_t batch = 1;
};

Built build(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
            const EngineProfile& engine, const Layout& layout) {
  Built b(cluster);
  b.batch = job.batch_for(layout.dp(), layout.micro_batch_size);
  b.memory = memory_costs(model, cluster, job, engine, layout);
  b.times = layer_times(model, job, engine, cluster, layout);
  b.groups =
      data_parallel_tables(b.tables, cluster, layout,
                           {model.num_experts > 0, job.reduce_scatter_with_fp32_accumulation});
  b.time_rules = time_rules(job, engine, cluster);
  b.stage_times = stage_times(model, job, b.time_rules, layout, b.times, b.memory.memories,
                              b.memory.stages, b.memory.num_microbatches);
  return b;
}

LeafContext leaf_context(const Built& b, const Layout& layout) {
  return {&b.time_rules, &layout, &b.groups, b.memory.num_microbatches};
}

void fill_communication(StepReport& report, const Built& b, const StepDetail& detail) {
  const StageTime& stage = b.stage_times.slowest;
  const auto m = static_cast<double>(b.memory.num_microbatches);
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
  const MemoryRules& rules = b.memory.rules;
  const std::int64_t each = std::max(rules.main_bytes, rules.weight_bytes) + rules.moment_bytes;
  report.checkpoint_bytes = Bytes(model.parameter_count() * each);
  if (cluster.storage_write.value() > 0) {
    const auto nodes = static_cast<double>(ceil_div(layout.world(), cluster.gpus_per_node));
    report.checkpoint_write = (report.checkpoint_bytes / cluster.storage_write) / nodes;
  }
}

}  // namespace

Evaluation evaluate(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout) {
  const Built b = build(model, cluster, job, engine, layout);
  const MemoryPeaks memory = step_memory(model, cluster, job, layout, b.memory).verdict;
  return {memory, step_time(b.stage_times, leaf_context(b, layout)).total()};
}

Seconds input_exposed(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                      const EngineProfile& engine, const Layout& layout) {
  const TimeRules rules = time_rules(job, engine, cluster);
  const std::int64_t rows = layout.dp() * layout.micro_batch_size;
  const std::int64_t batch = job.batch_for(layout.dp(), layout.micro_batch_size);
  const std::int64_t microbatches = std::max<std::int64_t>(1, batch / rows);
  const Seconds input = input_time(rules, layout, microbatches);
  if (input <= Seconds(0)) return Seconds(0);
  // No step is shorter than what the stage that computes least computes.
  const std::vector<LayerTime> times = layer_times(model, job, engine, cluster, layout);
  Seconds least(std::numeric_limits<double>::infinity());
  for (const StageLayers& stage : assign_stages(model, layout)) {
    Seconds computes;
    for (const StageRun& run : stage.runs) {
      const LayerTime& layer = times[static_cast<std::size_t>(run.kind)];
      computes += (layer.forward.compute() + layer.backward.compute()) * run.layers;
    }
    least = std::min(least, computes * static_cast<double>(microbatches));
  }
  constexpr double kMargin = 2;  // for what rounding does
  if (input * kMargin <= least) return Seconds(0);
  return estimate(model, cluster, job, engine, layout).time.input_exposed;
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
  report.num_microbatches = b.memory.num_microbatches;
  StepMemory memory = step_memory(model, cluster, job, layout, b.memory);
  report.stages = std::move(memory.stages);
  report.stage_upper = std::move(memory.upper);
  report.verdict = std::move(memory.verdict);

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
    explain_memory(report, {model, job, engine, layout, b.memory.memories, b.memory.stages,
                            b.memory.rules, b.memory.num_microbatches});
    explain_time(report, {model, cluster, job, engine, layout, b.times, b.memory.stages,
                          b.stage_times, context, found});
    for (const LayerSpec& layer : model.kinds) {
      layer_time(model, layer, job, engine, cluster, layout, &report.gemms);
    }
    explain_gemms(report, cluster.gpu);
  }
  return report;
}

}  // namespace shardwise
