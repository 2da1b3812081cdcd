#pragma once

#include <string>

#include "planner/question/subject.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A measured run, by whose error predictions of the same model and engine are corrected.
struct Correction {
  StepReport measured;
  Seconds predicted;  // for the run's own configuration

  /// Time of the run beyond its prediction, as a share of it.
  double share() const { return measured.step_time / predicted - 1; }
};

/// Predicts the run's configuration. Refuses predictions, runs of another model or engine, and
/// layouts that are not legal.
/// \param file     the name put into diagnostics
/// \param subject  what is predicted, on any number of GPUs
Result<Correction> correction_by(const StepReport& measured, const std::string& file,
                                 const Subject& subject);

/// anchor() with the run and its prediction.
void correct(StepReport& report, const Correction& correction);

}  // namespace shardwise
