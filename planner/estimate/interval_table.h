#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/report/error_interval.h"
#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/enum_names.h"

namespace shardwise {

/// Quantity of a calibrated interval.
enum class IntervalOf : std::uint8_t {
  step,
  step_ratio,  // of two layouts of one job, whose steps are predicted alike
  allocated,
  held,  // reserved or nvidia-smi: with what the allocator caches
};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<IntervalOf> = {"step", "step_ratio",
                                                                         "allocated", "held"};

/// An interval with the rows that it holds for.
struct IntervalCell {
  IntervalOf quantity = IntervalOf::step;
  ErrorInterval interval;
};

/// How many measurements of a source lay in intervals that were calibrated without it.
struct SourceCoverage {
  IntervalOf quantity = IntervalOf::step;
  std::string source;
  std::int64_t rows = 0;
  std::int64_t covered = 0;
  double half_width = 0;  // half of log(high / low), mean over the rows
};

/// Coverage over the sources of a quantity.
struct IntervalCoverage {
  IntervalOf quantity = IntervalOf::step;
  std::int64_t sources = 0;
  std::int64_t rows = 0;
  double tail = 0;        // share of a cell's weight that lies beyond either end
  double of_sources = 0;  // mean of the sources' covered shares
  double of_rows = 0;     // covered share of all rows
  double half_width = 0;  // mean over sources
};

/// configs/intervals.json, schema "shardwise.intervals/1".
struct IntervalTable {
  std::string method;
  std::vector<IntervalCoverage> coverage;
  std::vector<SourceCoverage> by_source;
  std::vector<IntervalCell> cells;  // of a quantity from narrow (family and GPU) to wide (all)
};

/// The software that an engine's runs share: "pytorch", "megatron", or the engine's own name.
std::string family_of(std::string_view engine);

/// The interval of the first cell that holds for a family's runs on GPUs of an architecture; not
/// known where the table has none.
ErrorInterval interval_in(const IntervalTable& table, IntervalOf quantity, std::string_view family,
                          std::string_view architecture);

/// Those of a prediction by the built-in table. Not known on CPUs, of which it has no rows, nor of
/// memory that the engine places itself, which is exact.
ReportIntervals report_intervals(const EngineProfile& engine, const ClusterSpec& cluster);

/// Interval of the ratio of two steps of one job, by the built-in table; not known on CPUs.
ErrorInterval step_ratio_interval(std::string_view engine, const ClusterSpec& cluster);

/// The table that is built in.
const IntervalTable& interval_table();

std::string interval_table_json(const IntervalTable& table);
/// \param file  the name put into diagnostics
Result<IntervalTable> interval_table_from_text(std::string_view text, const std::string& file);

}  // namespace shardwise
