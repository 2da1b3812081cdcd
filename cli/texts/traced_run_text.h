#pragma once

#include <cstddef>
#include <string>

#include "planner/spec/plan/layout.h"
#include "simulator/comparison/kind_comparison.h"

namespace shardwise::cli {

/// A trace beside the simulated step, for people: what was recorded, both steps, kinds and phases
/// by what they contribute to the difference, then operations (of a trace of ours) or the longest
/// kernels (of a profiler's). \param top  rows of the last table
std::string traced_run_text(const sim::TracedRun& run, const sim::TraceComparison& comparison,
                            const Layout& layout, std::size_t top, bool colour);

/// Kinds and phases of two steps, named by `first` and `second`.
std::string kinds_text(const sim::StepComparison& step, const char* first, const char* second,
                       bool colour);

/// Rows of two sides and what they differ by.
std::string compared_text(const std::string& heading, const std::vector<sim::ComparedTime>& rows,
                          const char* first, const char* second, std::size_t top, bool stages,
                          bool colour);

/// A kernel's name without return type and template arguments, cut to 44 columns.
std::string short_name(std::string name);

}  // namespace shardwise::cli
