#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/error_interval.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Parameters of the model without multi-token-prediction layers, and those a token passes through.
struct ReportedParameters {
  std::int64_t parameters = 0;  // 0 = not said
  std::int64_t active_parameters = 0;
};

/// A report as JSON, schema "shardwise.report/1": docs/formats.md.
/// \param intervals  of a prediction; not read back
std::string report_json(const StepReport& report, const ReportedParameters& model = {},
                        const ReportIntervals& intervals = {});

/// The member "intervals" of an object; nothing where none is known.
void write_intervals(JsonWriter& json, const StepReport& report, const ReportIntervals& known);

/// Reads a report back. Whatever can be added up from its parts (allocated, reserved, total bytes)
/// is not read but computed. Refused besides wrong types and ranges: a step of no time, parts that
/// do not add up to it, a simulated or measured step without its timeline.
Result<StepReport> read_report(const std::filesystem::path& path);

/// Reads a report from a text. \param file  the name put into diagnostics
Result<StepReport> report_from_text(std::string_view text, const std::string& file);

}  // namespace shardwise
