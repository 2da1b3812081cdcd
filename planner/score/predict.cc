#include "planner/score/predict.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "planner/cost/layer/adapters.h"
#include "planner/estimate/estimate.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/model/build.h"
#include "planner/score/rows/row_engine.h"
#include "planner/score/rows/row_job.h"
#include "planner/score/rows/row_layout.h"
#include "planner/score/rows/row_model.h"
#include "planner/score/rows/row_pytorch.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

/// Why a variant of the row is no legal layout, or nothing.
std::string refused_layout(const RowPrediction& p, const RowVariant& variant) {
  const Diagnostics problems =
      check_layout(p.model, *p.cluster, variant.job, *p.engine, variant.layout);
  if (problems.empty()) return "";
  const Diagnostic& first = problems.front();
  return fmt::format("{}: {}", first.path, first.message);
}

StepReport report_of(const RowPrediction& p, const RowVariant& variant, bool explained) {
  return estimate(p.model, *p.cluster, variant.job, *p.engine, variant.layout,
                  explained ? Detail::explained : Detail::numbers);
}

/// Where a source does not say what it recomputed, it recomputed what it had to: the least that
/// fits.
void choose_recompute(RowPrediction& p) {
  for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (RowVariant& variant : p.variants) variant.layout.recompute = kind;
    const StepReport report = report_of(p, p.variants.front(), false);
    if (report.verdict.fit != Fit::does_not_fit || kind == Recompute::full) {
      p.notes.assume(fmt::format("recompute {}, the first of none, selective and full that fits",
                                 name_of(kind)));
      return;
    }
  }
}

/// Adapters that a row names matrix by matrix, beside the model's.
void add_named_adapters(const Row& row, const JobSpec& job, RowPrediction& p) {
  AdapterChoice choice;
  choice.targets = named_adapters(row);
  const JsonValue* rank = row.flag("lora_rank");
  constexpr std::int64_t kMostRank = 65'536;
  const bool named = !choice.targets.empty() && rank != nullptr &&
                     rank->kind == JsonValue::Kind::integer && rank->integer > 0 &&
                     rank->integer <= kMostRank;
  if (!job.frozen_base || !named) return;
  choice.rank = rank->integer;
  ModelSpec adapted = p.model;
  if (add_adapters(adapted, choice).empty()) {
    p.model = std::move(adapted);
  } else {
    p.notes.assume("the adapters' own memory and time are left out");
  }
}

/// Says the row in the planner's terms; a refusal is in the notes.
void understand(const Row& row, Machines& machines, RowPrediction& p) {
  const std::optional<TransformerConfig> config = transformer_of(row, p.notes);
  if (!config) return;
  const std::optional<RowEngine> engine = engine_of(row, p.notes);
  if (!engine) return;
  const std::optional<Layout> layout = layout_of(row, *engine, p.notes);
  if (!layout) return;
  const std::optional<RowJob> job = job_of(row, *engine, *layout, p.notes);
  if (!job) return;
  p.cluster = machines.machine_of(row, layout->world(), p.notes);
  if (p.cluster == nullptr) return;
  Result<ModelSpec> model = make_model(*config, row.model.name);
  if (!model) {
    p.notes.refuse(model.problems().front().path + ": " + model.problems().front().message);
    return;
  }
  p.model = *std::move(model);
  p.engine = engine->profile;
  p.variants = job->variants;
  add_named_adapters(row, p.variants.front().job, p);
  for (RowVariant& variant : p.variants) {
    variant.job.loss_chunk_rows = usual_loss_chunk_rows(p.cluster->gpu);
    if (std::string reason = refused_layout(p, variant); !reason.empty()) {
      p.notes.refuse(std::move(reason));
      return;
    }
  }
  if (!job->recompute_stated) choose_recompute(p);
}

/// Seconds of a step that training metrics take, which no plan has.
double metrics_seconds(const Row& row, const RowPrediction& p, const RowVariant& variant) {
  const Layout& layout = variant.layout;
  const double logits = static_cast<double>(layout.micro_batch_size * variant.job.sequence_length) *
                        static_cast<double>(p.model.vocab_size);
  const GpuSpec& gpu = p.cluster->gpu;
  const double rate = gpu.memory_bandwidth.value() * gpu.memory_bound.bandwidth_share;
  const auto passes =
      static_cast<double>(variant.job.microbatches(layout.dp(), layout.micro_batch_size));
  return passes * metrics_bytes(row, logits) / rate;
}

}  // namespace

Seconds RowPredictor::time_of(const RowPrediction& p, const RowVariant& variant,
                              const StepReport& report) const {
  if (!step_time_ || !p.measured_time_s || !p.notes.refused_time.empty()) return report.step_time;
  return step_time_({p.model, *p.cluster, variant.job, *p.engine, variant.layout}, report);
}

RowPrediction RowPredictor::predict(const Row& row, bool explained) {
  RowPrediction p;
  understand(row, machines_, p);
  if (!p.notes.refused.empty()) return p;

  p.measured_time_s = measured_step_time_s(row, p.variants.front().layout, p.notes);
  if (row.measured.memory_gib) p.memory = measured_memory(row, p.notes);
  double memory = 0;
  double reserved = 0;
  double after_step = 0;
  double time = 0;
  MeasuredMemory in_reserve = p.memory;
  in_reserve.kind = MemoryKind::reserved;
  for (const RowVariant& variant : p.variants) {
    p.reports.push_back(report_of(p, variant, explained));
    const StepReport& report = p.reports.back();
    memory += variant.share * predicted_memory_gib(report, p.memory);
    reserved += variant.share * predicted_memory_gib(report, in_reserve);
    after_step += variant.share * predicted_after_step_gib(report, p.memory.rank);
    time +=
        variant.share * (time_of(p, variant, report).value() + metrics_seconds(row, p, variant));
  }
  if (!std::isfinite(time)) p.notes.refuse_time("no finite prediction");
  if (p.notes.refused_memory.empty()) {
    p.memory_gib = memory;
    p.reserved_gib = reserved;
    p.after_step_gib = after_step;
  }
  if (p.notes.refused_time.empty()) p.step_time_s = time;
  return p;
}

}  // namespace shardwise
