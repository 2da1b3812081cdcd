#include "planner/score/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/score/in_sample.h"
#include "planner/spec/report/memory_fit.h"

namespace shardwise {
namespace {

/// Why a row's quality keeps it out, or nothing.
std::string refused_by_quality(const Row& row) {
  if (row.quality == "A" || row.quality == "B") return "";
  if (row.quality == "C") return "quality C: layout or batch unclear, good for ratios only";
  if (row.quality == "X") return "quality X: contradicted by its own source";
  return fmt::format("quality {} is unknown", row.quality.empty() ? "(none)" : row.quality);
}

/// Why a row has nothing to compare with, or nothing.
std::string nothing_measured(const Row& row) {
  const RowMeasured& m = row.measured;
  if (m.oom || m.memory_gib || m.step_time_s || m.tokens_per_s_per_gpu || m.samples_per_s) {
    return "";
  }
  return m.reports_rate_only ? "only TFLOP/s or MFU measured, which sources count differently"
                             : "neither memory nor time measured";
}

/// What two runs of a source share that differ in layout, batch or flags alone.
std::string question_of(const Row& row) {
  return fmt::format("{} {} {} {} {} {} {}", row.model.name, row.model.layers.value_or(0),
                     row.model.hidden.value_or(0), row.model.seq.value_or(0), row.hardware.gpu,
                     row.hardware.gpus.value_or(0), row.precision);
}

/// What a figure says of the run besides its numbers.
ScoredFigure figure_of(const Row& row, Scored quantity, double measured, double predicted,
                       const RowPrediction& prediction) {
  ScoredFigure figure;
  figure.id = row.id;
  figure.source = row.source();
  figure.quantity = quantity;
  figure.measured = measured;
  figure.predicted = predicted;
  figure.engine = prediction.engine->name;
  figure.architecture = prediction.cluster->gpu.architecture;
  figure.gpu = prediction.cluster->gpu.name;
  figure.model = row.model.name;
  figure.in_sample = in_sample(row, prediction, quantity);
  figure.kind = prediction.memory.kind;
  figure.question = question_of(row);
  figure.sequences = static_cast<double>(prediction.reports.front().global_batch_size);
  return figure;
}

/// The measured quantities of one row, each to be scored or skipped with a reason.
void score_quantity(const Row& row, Scored quantity, std::optional<double> measured,
                    std::optional<double> predicted, const std::string& reason,
                    const RowPrediction& prediction, ScoreReport& report) {
  if (!measured) return;
  if (!predicted) {
    report.skipped.push_back({row.id, fmt::format("{}: {}", name_of(quantity), reason)});
    return;
  }
  report.figures.push_back(figure_of(row, quantity, *measured, *predicted, prediction));
  report.figures.back().assumed = prediction.notes.assumed;
}

void score_beside(const Row& row, std::string_view what, MemoryKind kind,
                  std::optional<double> measured, std::optional<double> predicted,
                  const RowPrediction& prediction, ScoreReport& report) {
  if (!measured || !predicted) return;
  ScoredFigure figure = figure_of(row, Scored::memory, *measured, *predicted, prediction);
  figure.source += fmt::format(" {}", what);
  figure.kind = kind;
  report.beside.push_back(std::move(figure));
}

/// What the verdict says of a run. Layers of which some are offloaded are several variants: their
/// peaks are weighted by layers, as their memory is.
JudgedRun judged(const Row& row, const RowPrediction& prediction) {
  MemoryPeaks peaks;
  Bytes usable;
  for (std::size_t i = 0; i < prediction.reports.size(); ++i) {
    const Verdict& each = prediction.reports[i].verdict;
    const double share = prediction.variants[i].share;
    const auto part = [&](Bytes bytes) {
      return Bytes(std::llround(share * static_cast<double>(bytes.value())));
    };
    peaks.needed += part(each.needed);
    peaks.upper += part(each.upper);
    peaks.host_lacks += part(each.host_lacks);
    usable = each.usable;
  }
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.value()) / kBytesPerGiB; };
  return {row.id,           row.measured.oom, fit_of(peaks, usable), gib(peaks.needed),
          gib(peaks.upper), gib(usable)};
}

/// Formulas of a paper are no run, and rows whose memory cannot be predicted have no verdict.
bool has_known_outcome(const Row& row, const RowPrediction& prediction) {
  const bool timed = prediction.measured_time_s.has_value();
  const bool formula = row.measured.memory_gib &&
                       prediction.memory.kind == MemoryKind::states_and_activations && !timed;
  return prediction.notes.refused_memory.empty() && !formula;
}

/// Why a run that ran out of memory is left out: it has no figure.
std::string ran_out_reason(const JudgedRun& run) {
  return fmt::format("ran out of memory, no figure; predicted to need {:.1f} of {:.1f} GiB: {}",
                     run.needed_gib, run.usable_gib, name_of(run.fit));
}

void score_row(const Row& row, RowPredictor& predictor, ScoreReport& report) {
  for (std::string reason : {refused_by_quality(row), nothing_measured(row)}) {
    if (reason.empty()) continue;
    report.skipped.push_back({row.id, std::move(reason)});
    return;
  }
  const RowPrediction prediction = predictor.predict(row);
  const Notes& notes = prediction.notes;
  if (!notes.refused.empty()) {
    report.skipped.push_back({row.id, notes.refused});
    return;
  }
  const bool known = has_known_outcome(row, prediction);
  if (known) report.judged.push_back(judged(row, prediction));
  if (row.measured.oom) {
    std::string reason = known ? ran_out_reason(report.judged.back())
                               : "ran out of memory, no figure: " + notes.refused_memory;
    report.skipped.push_back({row.id, std::move(reason)});
    return;
  }
  const RowMeasured& measured = row.measured;
  score_quantity(row, Scored::memory, measured.memory_gib, prediction.memory_gib,
                 notes.refused_memory, prediction, report);
  score_quantity(row, Scored::time, prediction.measured_time_s, prediction.step_time_s,
                 notes.refused_time, prediction, report);
  score_beside(row, "reserved", MemoryKind::reserved, measured.reserved_gib,
               prediction.reserved_gib, prediction, report);
  score_beside(row, "after step", MemoryKind::states_and_activations, measured.after_step_gib,
               prediction.after_step_gib, prediction, report);
}

OverallScore overall(const ScoreReport& report, Scored quantity) {
  OverallScore result;
  for (const SourceScore& source : report.sources) {
    if (source.quantity != quantity) continue;
    ++result.sources;
    result.rows += source.errors.n;
    result.median_abs_error += source.errors.median_abs_error;
    result.p90_abs_error += source.errors.p90_abs_error;
    result.bias += source.errors.bias;
  }
  if (result.sources == 0) return result;
  const auto n = static_cast<double>(result.sources);
  result.median_abs_error /= n;
  result.p90_abs_error /= n;
  result.bias /= n;
  return result;
}

}  // namespace

std::string_view name_of(Scored quantity) { return quantity == Scored::memory ? "memory" : "time"; }

void summarise(ScoreReport& report) {
  report.sources.clear();
  std::vector<std::string> names;
  for (const ScoredFigure& figure : report.figures) {
    if (std::ranges::find(names, figure.source) == names.end()) names.push_back(figure.source);
  }
  for (const std::string& name : names) {
    for (const Scored quantity : {Scored::memory, Scored::time}) {
      std::vector<double> errors;
      for (const ScoredFigure& figure : report.figures) {
        if (figure.source == name && figure.quantity == quantity) errors.push_back(figure.error());
      }
      if (errors.empty()) continue;
      report.sources.push_back({name, quantity, error_statistics(errors)});
    }
  }
  report.memory = overall(report, Scored::memory);
  report.time = overall(report, Scored::time);
}

ScoreReport score(std::span<const Row> rows, const StepTimer& step_time,
                  const std::function<void(std::size_t)>& progress) {
  ScoreReport report;
  RowPredictor predictor(step_time);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (progress) progress(i);
    score_row(rows[i], predictor, report);
  }
  report.unread = unread_flags(rows);
  summarise(report);
  return report;
}

}  // namespace shardwise
