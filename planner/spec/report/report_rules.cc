#include "planner/spec/report/report_rules.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr double kMostApart = 1e-6;  // of the parts of a step and the step

/// Stages are those of the layout.
void check_stages(ObjectReader& root, const StepTimeline& timeline, std::int64_t stages) {
  const auto refuse = [&](const std::string& what, std::int64_t stage) {
    root.fail("timeline",
              fmt::format("{} is of stage {}, but the layout has {}", what, stage,
                          stages == 1 ? std::string("only stage 0")
                                      : fmt::format("stages 0 to {}", stages - 1)),
              "a report has the stages of its layout");
  };
  for (const auto& each : timeline.stages) {
    if (each.stage >= stages) return refuse("a part", each.stage);
  }
  for (const auto& each : timeline.operations) {
    if (each.stage >= stages) return refuse("operation " + shown(each.name), each.stage);
  }
}

}  // namespace

void check_report(ObjectReader& root, const StepReport& report) {
  const bool measured = report.origin == "measured";
  if (report.origin != "predicted" && !measured) {
    root.fail("origin", "is neither predicted nor measured");
  }
  if (!root.ok()) return;  // what is missing would be said twice
  if (report.step_time <= Seconds(0)) {
    root.fail("step_time_s", "a step time of 0 s", "a step takes more");
    return;
  }
  const Seconds sum = report.time.total();
  if (std::abs(sum / report.step_time - 1) > kMostApart) {
    root.fail("time",
              fmt::format("its parts add up to {} s of a step of {} s", sum.value(),
                          report.step_time.value()),
              "the parts of a step add up to step_time_s");
  }
  if (report.timeline) return check_stages(root, *report.timeline, report.layout.pp);
  const bool clocked = measured || report.closed_form;
  if (root.has("timeline")) {
    root.fail("timeline", "has no stages", "each rank of a timeline belongs to a stage");
  } else if (clocked) {
    root.fail("timeline", "missing",
              fmt::format("a {} step has one", measured ? "measured" : "simulated"));
  }
}

}  // namespace shardwise
