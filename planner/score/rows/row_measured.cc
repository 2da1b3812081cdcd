#include "planner/score/rows/row_measured.h"

#include <algorithm>
#include <span>

#include "planner/score/rows/row_layout.h"

namespace shardwise {
namespace {

/// States of a paper's formulas: what a rank keeps of weights, gradients, optimizer and
/// activations.
std::int64_t states_and_activations(const StageMemory& stage) {
  using enum MemoryCategory;
  const Ledger& peak = stage[MemoryPhase::steady_forward_backward];
  std::int64_t sum = 0;
  for (const MemoryCategory category : {weights, main_weights, gradients, main_gradients,
                                        optimizer_moments, activations, activations_in_flight}) {
    sum += peak[category];
  }
  return sum;
}

std::int64_t bytes_of(const StageMemory& stage, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::allocated:
      return stage.peak_allocated().value();
    case MemoryKind::reserved:
      return stage.peak_reserved().value();
    case MemoryKind::total:
      return stage.peak_total().value();
    case MemoryKind::states_and_activations:
      return states_and_activations(stage);
  }
  return 0;
}

std::int64_t persistent_bytes(const StageMemory& stage) {
  using enum MemoryCategory;
  const Ledger& step = stage[MemoryPhase::steady_optimizer_step];
  return step[weights] + step[main_weights] + step[gradients] + step[optimizer_moments] +
         step[library_workspace];
}

std::span<const StageMemory> stages_of(const StepReport& report, MemoryRank rank) {
  const std::span<const StageMemory> all = report.stages;
  if (all.empty() || rank == MemoryRank::fullest) return all;
  return rank == MemoryRank::first_stage ? all.first(1) : all.last(1);
}

}  // namespace

MeasuredMemory measured_memory(const Row& row, Notes& notes) {
  const std::string_view wording = row.measured.memory_kind;
  MeasuredMemory result;
  if (says_any(wording, "last rank", "last pipeline stage")) result.rank = MemoryRank::last_stage;
  // The node that holds the embedding is the one they looked at.
  const bool embedding_node = row.id.starts_with("bigscience");
  if (embedding_node || says(wording, "first stage")) result.rank = MemoryRank::first_stage;
  if (says(wording, "component sum")) {
    result.kind = MemoryKind::states_and_activations;
  } else if (says(wording, "nvidia-smi")) {
    result.kind = MemoryKind::total;
  } else if (says(wording, "reserved")) {
    result.kind = MemoryKind::reserved;
  } else if (says_any(wording, "alloc", "peak_active")) {
    result.kind = MemoryKind::allocated;
    if (says(wording, "active")) notes.assume("active memory as allocated");
  } else {
    notes.assume("memory as nvidia-smi shows it");
  }
  return result;
}

double predicted_memory_gib(const StepReport& report, const MeasuredMemory& measured) {
  std::int64_t most = 0;
  for (const StageMemory& stage : stages_of(report, measured.rank)) {
    most = std::max(most, bytes_of(stage, measured.kind));
  }
  return static_cast<double>(most) / kBytesPerGiB;
}

double predicted_after_step_gib(const StepReport& report, MemoryRank rank) {
  std::int64_t most = 0;
  for (const StageMemory& stage : stages_of(report, rank)) {
    most = std::max(most, persistent_bytes(stage));
  }
  return static_cast<double>(most) / kBytesPerGiB;
}

std::optional<double> measured_step_time_s(const Row& row, const Layout& layout, Notes& notes) {
  const RowMeasured& measured = row.measured;
  if (!measured.step_time_s && !measured.tokens_per_s_per_gpu && !measured.samples_per_s) {
    return std::nullopt;
  }
  if (row.flag_off("time_representative")) {
    notes.refuse_time("its source calls the time not representative");
  } else if (row.flag("time_representative") != nullptr && !row.flag_on("time_representative")) {
    notes.assume("time as in ordinary runs; the source notes: " +
                 std::string(row.flag_text("time_representative")));
  }
  const auto sequences = static_cast<double>(global_batch_of(row, layout));
  const double tokens = sequences * static_cast<double>(row.model.seq.value_or(0));
  if (measured.step_time_s) return measured.step_time_s;
  if (measured.tokens_per_s_per_gpu) {
    return tokens / (*measured.tokens_per_s_per_gpu * static_cast<double>(layout.world()));
  }
  return sequences / *measured.samples_per_s;
}

}  // namespace shardwise
