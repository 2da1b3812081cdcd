#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/compare/compared.h"
#include "gui/models/compare/measured_lanes.h"
#include "gui/models/memory/memory_model.h"
#include "gui/models/question/predictions.h"
#include "planner/question/correction.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// Key by which the list of differences is joined.
enum class CompareBy : std::uint8_t { part, kind, operation };
inline constexpr std::array<std::string_view, 3> kCompareByNames = {"by part", "by kind",
                                                                    "by operation"};

/// One thing that the plan's step and the other one spend time on: a part of the slowest stage's
/// step, a kind of operations on a GPU on average, operations of one name on a rank of their stage.
struct CompareRow {
  std::string name;
  std::int32_t stage = -1;  // -1: of none, or of all
  Seconds predicted;        // of the plan
  Seconds measured;         // of the other
  bool in_predicted = true;
  bool in_measured = true;
  // Where to look: the operation that contributes most, and its first run in the plan's step, in
  // seconds.
  std::string operation;  // empty: none
  std::int32_t operation_stage = -1;
  double from = 0;
  double to = 0;

  Seconds difference() const { return predicted - measured; }
};

/// A plan beside what it is compared with. Signs are those of (predicted - measured) / measured.
struct CompareView {
  std::string origin;  // of the plan's side: "simulated", "estimated"
  Seconds predicted_step;
  Seconds measured_step;
  Bytes predicted_peak;  // 0 where the other says nothing of memory
  Bytes measured_peak;
  bool own_memory = false;                      // without context and communicators
  std::array<std::vector<CompareRow>, 3> rows;  // by CompareBy, most contributing first
  std::vector<AxisTime> axes;                   // exposed communication of the other
  std::vector<std::string> notes;               // what one side lacks, and other work
  MeasuredLanes lanes;                          // none where the other has no spans

  double relative() const { return predicted_step / measured_step - 1; }
  double relative_peak() const;
};

/// Rows that differ by less than a millionth of the step are left out: with itself there are none.
/// Operations and kinds are those of the simulated step, where it can be simulated.
/// \param estimated   the plan's
/// \param by  what predicts the plan's step; `estimated` is of them
CompareView compare_view(const Plan& plan, const StepReport& estimated, const Compared& other,
                         const Predictions& by);

/// Where a bar of memory has its tick.
struct MemoryTick {
  Bytes at;     // on the axis of the bar
  Bytes value;  // what the other says
};
/// One for each of memory_stacks() of the plan's report; nothing where the other has none. Of a
/// run, which does not measure context and communicators, those of the prediction are below the
/// tick.
std::vector<std::optional<MemoryTick>> memory_ticks(const StepReport& report,
                                                    const StepReport& other, MemoryBy by);

/// The other's fullest stage where bars and dots of the plan's memory have it; nothing where the
/// other has none.
std::optional<Bytes> peak_beside(const StepReport& report, const StepReport& other);

/// "1 of 8: reduce-scatter, backward, -13.8 ms": what is looked at, and why nothing of it is on the
/// timeline where nothing is. \pre row is below the number of rows
std::string look_text(const CompareView& view, CompareBy by, std::size_t row, bool simulated);
/// Why no lane of the other is on the timeline; empty where one is.
std::string no_lanes_text(const CompareView& view, const Compared& other);

/// "calibrated by a run on 8 GPUs: +3.1 %".
std::string correction_text(const Correction& correction);

/// "measured 54.2 s, here simulated 55.9 s: +3.1 %".
std::string difference_text(const CompareView& view, std::string_view origin);

}  // namespace shardwise::view
