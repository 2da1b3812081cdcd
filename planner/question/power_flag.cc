#include "planner/question/power_flag.h"

#include <fmt/format.h>

#include <utility>

#include "planner/question/flags.h"
#include "planner/spec/machine/power_limit.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

constexpr double kLeastWatts = 1;
constexpr double kMostWatts = 1e5;

}  // namespace

double take_power_limit(std::map<std::string, std::string>& texts, Diagnostics& problems) {
  const auto node = texts.extract(kPowerField);
  if (node.empty() || node.mapped().empty()) return 0;
  double watts = 0;
  const std::string problem = read_number(node.mapped(), kLeastWatts, kMostWatts, watts);
  if (!problem.empty()) problems.push_back(wrong_flag(flag_of(kPowerField), problem));
  return watts;
}

void limit_power(double watts, Subject& subject, Diagnostics& problems) {
  if (watts == 0) return;
  GpuSpec& gpu = subject.cluster.gpu;
  if (watts > gpu.tdp_watts) {
    problems.push_back(wrong_flag(
        flag_of(kPowerField), fmt::format("{:g} W is more than {} may draw", watts, gpu.name),
        gpu.tdp_watts > 0 ? fmt::format("use at most {:g}", gpu.tdp_watts) : "leave it out"));
    return;
  }
  if (watts == gpu.tdp_watts) return;
  subject.assumptions.push_back(
      {"gpu.power_limit",
       fmt::format("matrix products of long runs at {:.0f} % of their speed at {:g} W, as is the "
                   "limit of {:g} W",
                   100 * watts / gpu.tdp_watts, gpu.tdp_watts, watts),
       "docs/compute_fits.md, Long runs"});
  gpu = under_power_limit(std::move(gpu), watts);
}

}  // namespace shardwise
