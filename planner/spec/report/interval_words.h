#pragma once

#include <string>

#include "planner/spec/report/error_interval.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// "57.0 s (90 %: 55.1 to 68.0 s)"; the time alone where its interval is not known.
std::string time_with_interval(Seconds time, const ErrorInterval& interval);

/// "90 %: 55.1 to 68.0 s"; empty where the interval is not known.
std::string interval_words(Seconds time, const ErrorInterval& interval);
/// "90 %: 62.0 to 68.1 GiB"; the same.
std::string interval_words(Bytes amount, const ErrorInterval& interval);

/// The intervals of a report in a line: "90 %: step 55.1 to 68.0 s; allocated 60.1 to 66.0,
/// nvidia-smi 64.0 to 75.1 GiB"; empty where none is known.
std::string intervals_line(const StepReport& report, const ReportIntervals& known);

/// "the step as 231 rows of 9 sources (megatron on hopper); …": what they were calibrated on.
std::string calibrated_on(const ReportIntervals& known);

}  // namespace shardwise
