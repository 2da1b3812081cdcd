#include "planner/search/advice/cheapest_fix.h"

#include <fmt/format.h>

#include "planner/spec/text/format.h"

namespace shardwise {

std::optional<Fix> cheapest_fix(const ModelSpec& model, const ClusterSpec& cluster,
                                const JobSpec& job, const EngineProfile& engine,
                                const Layout& layout, Bytes usable,
                                const std::function<bool(const Layout&)>& is_open) {
  std::optional<Fix> best;
  // Without a stated batch, layouts have batches of different size.
  const auto each_sequence = [&](const Fix& fix) {
    const Layout& l = fix.change.layout;
    return fix.cost.step_time / static_cast<double>(job.batch_for(l.dp(), l.micro_batch_size));
  };
  for (const LayoutChange& change : single_changes(model, cluster, job, engine, layout)) {
    if (is_open && !is_open(change.layout)) continue;
    const Fix fix = {change, evaluate(model, cluster, job, engine, change.layout)};
    if (fit_of(fix.cost, usable) != Fit::fits) continue;
    if (!best || each_sequence(fix) < each_sequence(*best)) best = fix;
  }
  return best;
}

std::string to_string(const Fix& fix) {
  return fmt::format("{}: {}, {} a step{}", fix.change.text, format_bytes(fix.cost.point),
                     format_seconds(fix.cost.step_time),
                     fix.change.rounds_gradients ? "; 16-bit gradients change the results" : "");
}

}  // namespace shardwise
