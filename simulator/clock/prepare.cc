#include "simulator/clock/prepare.h"

#include <vector>

#include "planner/cost/software/time_rules.h"
#include "planner/cost/step/host_issue.h"
#include "planner/lowering/lower.h"
#include "simulator/workload/links.h"

namespace shardwise::sim {

void prepare(const Plan& plan, const SimulationOptions& options, Wanted wanted, Simulation& made,
             std::int64_t num_microbatches) {
  made.program = wanted == Wanted::all
                     ? lower(plan, options.granularity)
                     : lower_without_buffers(plan, options.granularity, num_microbatches);
  for (const PriceScale& scale : options.scales) split_costs(made.program, scale);
  made.prices = prices_of(plan, made.program, options.transport);
  for (const PriceScale& scale : options.scales) {
    scale_prices(plan, made.program, scale, made.prices);
  }
  if (!options.shared_links) {
    for (std::vector<CostPrice>& stage : made.prices) {
      for (CostPrice& price : stage) price.link_share = {};
    }
  }
  if (wanted == Wanted::program) return;
  LaunchRules launch;
  if (options.host) {
    const TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
    launch.issue = rules.issue.value();
    launch.waits_for_messages = waits_for_messages(rules, plan.layout);
    launch.waits_for_norm = rules.waits_for_norm;
  }
  launch.in_issue_order = options.in_issue_order;
  std::vector<LinkKind> links;
  if (options.shared_links) links = shared_links(plan.cluster);
  made.work = options.all_ranks
                  ? all_ranks(made.program, made.prices, plan.layout, links, launch)
                  : representatives(made.program, made.prices, plan.layout, links, launch);
}

}  // namespace shardwise::sim
