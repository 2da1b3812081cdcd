#include "simulator/clock/closed_form.h"

#include <string>
#include <utility>
#include <vector>

#include "planner/cost/collectives/collective_table.h"
#include "planner/schedule/stages.h"

namespace shardwise::sim {

TimeParts closed_form_time(const Plan& plan, const ClosedFormMechanisms& with, StepDetail* detail) {
  const Layout& layout = plan.layout;
  TimeRules rules = time_rules(plan.job, plan.engine, plan.cluster);
  const std::int64_t replicas = layout.dp() * layout.micro_batch_size;
  const std::int64_t microbatches =
      plan.job.batch_for(layout.dp(), layout.micro_batch_size) / replicas;
  const std::vector<LayerMemory> memories =
      layer_memories(plan.model, plan.job, plan.engine, layout);
  const StageTimes stages =
      stage_times(plan.model, plan.job, rules, layout,
                  layer_times(plan.model, plan.job, plan.engine, plan.cluster, layout), memories,
                  assign_stages(plan.model, layout), microbatches);
  // A layer is priced with what its compute loses to the exchange that it hides, here and on the
  // clock.
  if (!with.multiprocessors) {
    rules.overlap_tax_intra = {};
    rules.overlap_tax_inter = {};
  }
  rules.links_shared = with.links;
  if (!with.host) rules.issue = Seconds(0);
  CollectiveTables tables(plan.cluster);
  const DataParallelTables groups = data_parallel_tables(
      tables, plan.cluster, layout,
      {plan.model.num_experts > 0, plan.job.reduce_scatter_with_fp32_accumulation});
  return step_time(stages, {&rules, &layout, &groups, microbatches}, detail);
}

ClosedForm beside_closed_form(const Plan& plan, const SimulationOptions& options,
                              const StepReport& simulated) {
  ClosedForm made;
  made.time = closed_form_time(plan, {options.contention, options.host, options.contention});
  made.step_time = made.time.total();

  SimulationOptions more = options;
  more.all_ranks = false;  // representatives take as long
  more.in_issue_order = false;
  more.contention = false;
  more.host = false;
  Seconds closed_before;
  Seconds clock_before;
  const auto add = [&](std::string mechanism, Seconds by_closed_form, Seconds on_clock) {
    made.mechanisms.push_back(
        {std::move(mechanism), by_closed_form - closed_before, on_clock - clock_before});
    closed_before = by_closed_form;
    clock_before = on_clock;
  };
  const auto clock = [&] { return simulated_length(plan, more) + simulated.time.input_exposed; };

  add("each operation without contention", closed_form_step(plan, {false, false, false}), clock());
  more.contention = options.contention;
  more.shared_links = false;
  const Seconds slowed = closed_form_step(plan, {options.contention, false, false});
  add("shared multiprocessors and memory", slowed, clock());
  more.shared_links = options.shared_links;
  add("shared links", closed_form_step(plan, {options.contention, false, options.contention}),
      clock());
  more.host = options.host;
  add("kernel launches by the host", made.step_time,
      options.in_issue_order ? clock() : simulated.step_time);
  if (options.in_issue_order) add("one connection", made.step_time, simulated.step_time);
  return made;
}

}  // namespace shardwise::sim
