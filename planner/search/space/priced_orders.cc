#include "planner/search/space/priced_orders.h"

#include <algorithm>

#include "planner/search/space/rank_orders.h"
#include "planner/search/space/shape_cache.h"

namespace shardwise {

std::vector<PricedOrder> priced_orders(const Plan& plan, const std::stop_token& stop) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  // The first of those alike stands for all.
  std::vector<RankOrder> candidates = {plan.layout.order};
  const std::vector<RankOrder> all = search_space(question, Breadth::full).order;
  candidates.insert(candidates.end(), all.begin(), all.end());
  ShapeCache shapes(plan.cluster);
  std::vector<PricedOrder> priced;
  for (const PlacedOrder& each :
       distinct_orders(shapes, plan.layout, plan.model.num_experts > 0, candidates)) {
    if (stop.stop_requested()) break;
    Layout layout = plan.layout;
    layout.order = each.order;
    priced.push_back(
        {each.order, evaluate(plan.model, plan.cluster, plan.job, plan.engine, layout)});
  }
  std::ranges::stable_sort(priced, {}, [](const PricedOrder& each) { return each.cost.step_time; });
  return priced;
}

}  // namespace shardwise
