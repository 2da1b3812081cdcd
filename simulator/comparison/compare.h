#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/report.h"

namespace shardwise::sim {

/// One thing that two reports say the time of.
struct ComparedTime {
  std::string name;  // a part of the step ("forward"), or an operation ("fwd.layer12")
  std::int32_t stage = 0;
  std::int32_t second_stage = 0;  // in the second, where it may have another
  Seconds first;
  Seconds second;
  bool in_first = true;
  bool in_second = true;
  Seconds difference() const { return second - first; }
};

/// Two reports side by side: predicted and measured, or two plans. Each list is sorted by what the
/// row contributes to the difference, largest first, whatever its sign.
struct Comparison {
  Seconds first_step;
  Seconds second_step;
  std::vector<ComparedTime> parts;       // of the step on the slowest stage
  std::vector<ComparedTime> operations;  // joined on their names; empty without timelines
  std::vector<ComparedTime> axes;        // exposed communication
  /// Peak of the fullest stage, as nvidia-smi shows it; of a measured report and another, that of
  /// the ranks themselves, without context and communicators, which a run does not measure.
  Bytes first_peak;
  Bytes second_peak;
  bool own_memory = false;  // the latter

  /// (second - first) / first of the step time.
  double relative() const { return second_step / first_step - 1; }
  /// Relative difference of the peak memory; 0 where neither has any.
  double relative_peak() const {
    const auto first = static_cast<double>(first_peak.value());
    const auto second = static_cast<double>(second_peak.value());
    return first == second ? 0 : second / first - 1;
  }
};

/// Operations are joined on name and stage, and those that are left on their name alone, in the
/// order of their stages: under another pipeline a layer is on another stage.
Comparison compare(const StepReport& first, const StepReport& second);

/// One row as an object; `first` and `second` are its keys.
void write_row(JsonWriter& json, const ComparedTime& row, const char* first, const char* second);

/// Schema "shardwise.comparison/1".
std::string comparison_json(const Comparison& comparison);

}  // namespace shardwise::sim
