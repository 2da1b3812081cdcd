#include "executor/engine/require_end.h"

#include <fmt/format.h>

#include <string>

#include "planner/lowering/checks/check_ranks.h"
#include "planner/lowering/lower.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

// Source: CUDA programming guide, environment variables, CUDA_DEVICE_MAX_CONNECTIONS.
constexpr int kUsualQueues = 8;

void require_end_of(const StepProgram& program, const Layout& layout) {
  if (check_ranks(program, layout, {.hardware_queues = 1}).empty()) return;
  const std::string why = check_ranks(program, layout, {.hardware_queues = kUsualQueues});
  if (!why.empty()) throw IoError(fmt::format("the step would never end: {}", why));
}

}  // namespace

void require_end(const Plan& plan, std::span<const StepProgram> programs) {
  for (const StepProgram& each : programs) {
    const bool whole = std::ssize(each.stages) == plan.layout.pp;
    const StepKind step = each.first_step ? StepKind::first : StepKind::steady;
    require_end_of(whole ? each : lower(plan, Granularity::layer, step), plan.layout);
  }
}

}  // namespace shardwise::exec
