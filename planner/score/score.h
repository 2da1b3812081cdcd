#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/score/predict.h"
#include "planner/score/rows/row.h"
#include "planner/score/rows/row_flags.h"
#include "planner/score/rows/row_measured.h"
#include "planner/score/statistics.h"

namespace shardwise {

enum class Scored : std::uint8_t { memory, time };
std::string_view name_of(Scored quantity);

/// One measured figure against its prediction: GiB for memory, seconds of a step for time.
struct ScoredFigure {
  std::string id;
  std::string source;
  Scored quantity = Scored::memory;
  double measured = 0;
  double predicted = 0;
  std::vector<std::string> assumed;
  std::string engine;        // that it was predicted with
  std::string architecture;  // of the GPU
  std::string gpu;           // of the catalogue
  std::string model;         // as its source calls it
  bool in_sample = false;    // something that predicts it was fitted to data of its repository
  MemoryKind kind = MemoryKind::total;  // of memory
  std::string question;  // of a time: what runs of one source share that differ in layout alone
  double sequences = 0;  // of a step
  double error() const { return (predicted - measured) / measured; }
};

struct SkippedRow {
  std::string id;
  std::string reason;
};

/// A run whose outcome is known, and what the verdict (fit_of) says of it.
struct JudgedRun {
  std::string id;
  bool ran_out = false;  // it ended for lack of memory
  Fit fit = Fit::fits;
  double needed_gib = 0;
  double upper_gib = 0;
  double usable_gib = 0;
  /// It was said to fit and ran out, or not to fit and ran. `at_risk` is neither.
  bool wrong() const { return fit == (ran_out ? Fit::fits : Fit::does_not_fit); }
};

struct SourceScore {
  std::string source;
  Scored quantity = Scored::memory;
  ErrorStatistics errors;
};

/// Means over sources, so that a source with many rows does not drown the others.
struct OverallScore {
  std::size_t sources = 0;
  std::size_t rows = 0;
  double median_abs_error = 0;  // mean of the sources' medians, and so on
  double p90_abs_error = 0;
  double bias = 0;
};

struct ScoreReport {
  std::vector<ScoredFigure> figures;  // in the order of the rows; memory before time
  std::vector<ScoredFigure> beside;   // further figures of the rows: reserved, after the step
  std::vector<SkippedRow> skipped;
  std::vector<JudgedRun> judged;     // runs whose memory can be predicted
  std::vector<FlagUnread> unread;    // flags of the rows that no rule reads
  std::vector<SourceScore> sources;  // in order of appearance; memory before time
  OverallScore memory;
  OverallScore time;
};

/// Predicts every row and compares. Rows that cannot be said in the planner's terms are listed as
/// skipped, with the reason; so is a quantity of a row when only the other one can be scored.
/// \param step_time  of a plan, by other means than the step-time model
/// \param progress   told how many rows are done
ScoreReport score(std::span<const Row> rows, const StepTimer& step_time = {},
                  const std::function<void(std::size_t)>& progress = {});

/// Groups figures by source and averages over the sources.
void summarise(ScoreReport& report);

}  // namespace shardwise
