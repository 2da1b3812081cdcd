#include "planner/search/advice/goodput.h"

#include <cmath>

#include "planner/spec/text/check.h"

namespace shardwise {

Goodput goodput_at(const FailureModel& failures, Seconds interval) {
  const double mtbf = failures.mtbf.value();
  SHARDWISE_CHECK(mtbf > 0 && interval.value() > 0, "mtbf and interval must be positive");
  const double segment = interval.value() + failures.checkpoint.value();
  // expm1 keeps its digits when failures are rare.
  const double wall = mtbf * std::exp(failures.restart.value() / mtbf) * std::expm1(segment / mtbf);
  Goodput result;
  result.interval = interval;
  result.share = interval.value() / wall;
  result.saving = failures.checkpoint.value() / wall;
  result.lost = 1 - result.share - result.saving;
  return result;
}

Goodput best_goodput(const FailureModel& failures) {
  const double mtbf = failures.mtbf.value();
  const double cost = failures.checkpoint.value();
  SHARDWISE_CHECK(mtbf > 0 && cost > 0, "mtbf and checkpoint time must be positive");
  double interval = mtbf;
  if (cost < 2 * mtbf) {
    const double ratio = cost / (2 * mtbf);
    interval = std::sqrt(2 * cost * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
  }
  return goodput_at(failures, Seconds(interval));
}

}  // namespace shardwise
