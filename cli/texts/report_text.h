#pragma once

#include <string>
#include <vector>

#include "planner/spec/report/error_interval.h"
#include "planner/spec/report/report.h"

namespace shardwise::cli {

/// The pieces of a report as people read them in 80 columns; each ends with a newline.

/// "a run needs 64.2 GiB (allocated, context, communicators), in the optimizer step".
std::string ends_words(const StepReport& report);
/// "90 %: step 55.1 to 68.0 s; …": where measurements of what was predicted lie.
std::string interval_text(const StepReport& report, const ReportIntervals& known, bool colour);
/// Data on which those intervals were calibrated.
std::string calibration_text(const ReportIntervals& known, bool colour);
/// Does it fit, how full, how long a step; allocated, reserved, nvidia-smi, and what ends a run.
/// Then what would make it fit, if anything.
/// \param brief  in one line, where there is little room
std::string verdict_text(const StepReport& report, bool colour, bool brief = false);
/// One line: model with `parameters` in words, engine, degrees, batch.
std::string layout_text(const StepReport& report, bool colour, const std::string& parameters = "");
/// GiB by category and phase of the fullest stage; allocated, reserved, nvidia-smi below.
std::string memory_text(const StepReport& report, bool colour);
/// Where the step's time goes, with shares; communication by axis.
std::string time_text(const StepReport& report, bool colour);
/// The step and where it comes from, tokens, utilisation, cost, checkpoint.
std::string rates_text(const StepReport& report, const ReportIntervals& known,
                       std::string_view origin, bool colour);
/// Formulas with their values and sources, GEMM shapes measured and not, assumptions.
std::string explanation_text(const StepReport& report, bool colour);
/// Assumptions of the numbers, each with its source; nothing where there is none.
std::string assumptions_text(const StepReport& report, bool colour);

/// "assumed: …", a line each: what was taken for want of a flag.
std::string assumed_text(const std::vector<Assumption>& assumptions, bool colour);

}  // namespace shardwise::cli
