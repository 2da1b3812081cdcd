#pragma once

#include <string>

#include "simulator/clock/simulate.h"

namespace shardwise::cli {

/// Time a step takes, first p50 and p95 of the trials with noise where there are trials; how
/// much of it computes, and what `shardwise estimate` says. Trials are `noisy` where something is
/// set that disturbs a step.
std::string simulated_text(const StepReport& report, bool noisy, bool colour);
/// The step whose rates are printed, the median trial's where there are trials; and its name.
StepReport rates_of(const StepReport& report);
std::string rates_origin(const StepReport& report);
/// The step drawn in 80 columns: for each stage a line of its compute stream, and for the slowest
/// stage one of every other stream, the first few of either unless `whole`. A column is a share of
/// the step; its letter is what ran longest in it.
std::string timeline_text(const sim::Simulation& simulation, bool whole, bool colour);
/// Busy and exposed time by stream, link use by tier, of the stage that computes longest.
std::string streams_text(const StepReport& report, bool colour);
/// One line where a stage's peak over time does not fit although its ledger does, which for our own
/// programs would be a fault of either; else nothing. The ledger's own verdict is verdict_text().
std::string timeline_misfit_text(const StepReport& report, bool colour);
/// Peak of the fullest stage over time; what is alive then when `whole`.
std::string peak_text(const StepReport& report, bool whole, bool colour);

}  // namespace shardwise::cli
