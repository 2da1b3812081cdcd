#include "gui/models/mesh/mesh_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "answers/simulated_steps.h"
#include "gui/models/question/simulated.h"
#include "planner/recorded/stage_timeline.h"
#include "planner/spec/plan/group_axes.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"
#include "simulator/workload/links.h"
#include "simulator/workload/rank_classes.h"

namespace shardwise::view {
namespace {

std::string_view use_of(Stream stream) {
  switch (stream) {
    case Stream::all_gather:
      return "parameter gather";
    case Stream::reduce_scatter:
      return "gradient reduction";
    case Stream::outer_reduce:
      return "reduction of replicas";
    case Stream::tensor_parallel:
      return "tensor parallel";
    case Stream::context_parallel:
      return "context parallel";
    case Stream::expert_parallel:
      return "tokens to experts";
    case Stream::send:
    case Stream::receive:
      return "pipeline messages";
    case Stream::host_copy:
      return "offload";
    case Stream::compute:
    case Stream::copy:
      break;
  }
  return "end of the step";
}

/// The number that a colour is of; more is more of it.
double amount(const MeshFacts& facts, MeshColour colour, std::size_t stage) {
  const StageFacts& of = facts.stages[stage];
  switch (colour) {
    case MeshColour::time:
      return of.computing.value();
    case MeshColour::memory:
      return static_cast<double>(of.peak.value());
    case MeshColour::sent:
      return std::reduce(of.sent.traffic.bytes.begin(), of.sent.traffic.bytes.end());
    case MeshColour::stage:
      break;
  }
  return static_cast<double>(stage);
}

/// How long each rank computes, where ranks of a stage differ.
std::vector<Seconds> rank_times(const Plan& plan, const sim::Simulation& simulation) {
  const std::vector<sim::Actor>& actors = simulation.work.actors;
  if (actors.size() == simulation.program.stages.size()) return {};
  if (plan.layout.world() > kMostDrawnRanks) return {};
  std::vector<Seconds> of_actor;
  std::vector<OperationTime> operations;
  for (const sim::Actor& actor : actors) {
    operations.clear();
    of_actor.push_back(
        stage_timeline(sim::recorded(sim::run_times(simulation, actor)), operations).computing);
  }
  std::vector<Seconds> times;
  for (const std::uint32_t actor :
       sim::actors_of_ranks(simulation.program, plan.layout, sim::shared_links(plan.cluster))) {
    times.push_back(of_actor[actor]);
  }
  return times;
}

std::pair<std::size_t, std::size_t> extreme_stages(const MeshFacts& facts, MeshColour colour) {
  std::pair<std::size_t, std::size_t> found;
  for (std::size_t stage = 0; stage < facts.stages.size(); ++stage) {
    const double here = amount(facts, colour, stage);
    if (here < amount(facts, colour, found.first)) found.first = stage;
    if (here > amount(facts, colour, found.second)) found.second = stage;
  }
  return found;
}

}  // namespace

MeshFacts mesh_facts(const Plan& plan, const Predictions& by) {
  MeshFacts facts;
  facts.orders = priced_orders(plan);
  for (PricedOrder& each : facts.orders) {
    each.cost.step_time = each.cost.step_time * by.slower(plan);
  }
  if (!is_simulated(plan)) {
    facts.problem = fmt::format("a step of {} passes through layers is not simulated",
                                format_count(sim::layer_passes_of_step(plan)));
    return facts;
  }
  const sim::Simulation simulation = sim::simulate(plan);
  const std::vector<sim::StageSent> sent = sim::sent_by_stage(plan, simulation.program);
  const StepTimeline& timeline = sim::timeline_of(simulation.report);
  facts.step = simulation.report.step_time;
  for (std::size_t stage = 0; stage < sent.size(); ++stage) {
    facts.stages.push_back({timeline.stages[stage].computing,
                            simulation.report.stages[stage].peak_total(), sent[stage]});
  }
  facts.slowest = extreme_stages(facts, MeshColour::time).second;
  facts.computing = rank_times(plan, simulation);
  return facts;
}

Seconds computing_of(const MeshFacts& facts, const MeshBox& box) {
  if (facts.computing.empty()) return facts.stages[static_cast<std::size_t>(box.stage)].computing;
  return facts.computing[static_cast<std::size_t>(box.rank)];
}

std::vector<double> box_shades(const MeshView& mesh, const MeshFacts* facts, MeshColour colour) {
  const bool known = facts != nullptr && !facts->stages.empty();
  std::vector<double> values;
  values.reserve(mesh.boxes.size());
  for (const MeshBox& box : mesh.boxes) {
    const auto stage = static_cast<std::size_t>(box.stage);
    values.push_back(!known                       ? static_cast<double>(stage)
                     : colour == MeshColour::time ? computing_of(*facts, box).value()
                                                  : amount(*facts, colour, stage));
  }
  if (values.empty()) return values;
  const auto [low, high] = std::ranges::minmax(values);
  for (double& each : values) each = high > low ? (each - low) / (high - low) : 0.5;
  return values;
}

std::string stage_text(const MeshFacts& facts, MeshColour colour, std::size_t stage) {
  const StageFacts& of = facts.stages[stage];
  switch (colour) {
    case MeshColour::time:
      return format_seconds(of.computing);
    case MeshColour::memory:
      return format_bytes(of.peak);
    case MeshColour::sent:
      return format_bytes(Bytes(static_cast<std::int64_t>(amount(facts, colour, stage))));
    case MeshColour::stage:
      break;
  }
  return fmt::format("stage {}", stage);
}

std::array<std::string, 2> stage_ends(const MeshFacts& facts, MeshColour colour) {
  if (facts.stages.empty()) return {};
  const auto [least, most] = extreme_stages(facts, colour);
  return {stage_text(facts, colour, least), stage_text(facts, colour, most)};
}

TrafficTable traffic_table(const Plan& plan, const MeshFacts& facts, std::size_t stage) {
  TrafficTable table;
  if (stage >= facts.stages.size()) return table;
  const sim::StageSent& sent = facts.stages[stage].sent;
  std::vector<std::size_t> used;
  for (std::size_t tier = 0; tier < plan.cluster.tiers.size(); ++tier) {
    if (sent.over(tier) == Bytes(0)) continue;
    used.push_back(tier);
    table.tiers.push_back(plan.cluster.tiers[tier].name);
    table.totals.push_back(sent.over(tier));
    table.busy.push_back(sent.traffic.seconds[tier] / facts.step.value());
  }
  for (const sim::SentPart& part : sent.parts) {
    // Norms and counts, whatever stream they have.
    const bool sums = part.group == GroupKind::world || part.group == GroupKind::stage;
    const std::string_view use = sums ? "sums over ranks" : use_of(part.stream);
    const std::string_view within =
        part.group == GroupKind::world ? "all ranks" : axes_of(part.group);
    TrafficRow row{std::string(use), std::string(within), 1, {}};
    row.ranks = group_shape(plan.cluster, plan.layout, part.group).ranks;
    for (const std::size_t tier : used) row.bytes.push_back(part.bytes[tier]);
    table.rows.push_back(std::move(row));
  }
  const auto sum = [](const TrafficRow& row) {
    return std::accumulate(row.bytes.begin(), row.bytes.end(), Bytes(0));
  };
  std::ranges::stable_sort(table.rows, std::ranges::greater(), sum);
  return table;
}

}  // namespace shardwise::view
