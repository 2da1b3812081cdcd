#include "planner/cost/host_issue.h"

#include "planner/cost/step_time.h"

namespace shardwise {

HostRules host_rules(const LeafContext& context, Seconds hop) {
  HostRules rules;
  rules.issue = context.rules->issue.value();
  rules.hop = hop.value();
  rules.waits = rules.issue > 0 && waits_for_messages(*context.rules, *context.layout);
  return rules;
}

IssuedPass issued_layer(const LayerPace& layer, const HostRules& rules) {
  const LayerLaunches& kernels = layer.launches;
  const Seconds backward = layer.time.backward - layer.recompute;
  const IssuedKernels again(layer.recompute, kernels.recompute, rules.issue);
  IssuedPass pass;
  pass.forward = {layer.time.forward, kernels.forward, rules.issue};
  pass.backward = again.then({backward, kernels.backward, rules.issue});
  pass.backward_input = again.then({backward - layer.time.weight_gradient,
                                    kernels.backward - kernels.weights, rules.issue});
  pass.backward_weight = {layer.time.weight_gradient, kernels.weights, rules.issue};
  return pass;
}

bool issues_late(const PipelineTimes& pipeline, const HostRules& rules) {
  if (rules.issue <= 0) return false;
  std::vector<IssuedPass> layers;
  layers.reserve(pipeline.layers.size());
  for (const LayerPace& layer : pipeline.layers) {
    const IssuedPass& pass = layers.emplace_back(issued_layer(layer, rules));
    // What runs first may be issued while nothing runs, so no layer makes up for another.
    if (pass.forward.issue > pass.forward.runs || pass.backward.issue > pass.backward.runs ||
        layer.launches.recompute * rules.issue > layer.recompute.value()) {
      return true;
    }
  }
  if (pipeline.slots->stages == 1) return false;
  const double messages = 2 * rules.issue;
  for (std::size_t place = 0; place < pipeline.chunk_time.size(); ++place) {
    double forward = messages;
    double backward = messages;
    for (const PacedRun& run : pipeline.runs_of(place)) {
      const IssuedPass& pass = layers[static_cast<std::size_t>(run.kind)];
      forward += run.layers * pass.forward.issue;
      backward += run.layers * pass.backward.issue;
    }
    const ChunkTime& runs = pipeline.chunk_time[place];
    if (forward > runs.forward.value() || backward > runs.backward.value()) return true;
  }
  return false;
}

StageHosts::StageHosts(const PipelineSlots& slots, const HostRules& rules)
    : slots_(slots),
      rules_(rules),
      clocks_(static_cast<std::size_t>(slots.stages), HostClock(rules.issue)) {
  if (!on() || slots.stages == 1) return;
  arrived_.resize(clocks_.size(), -1);
  posted_.resize(slots.slots.size(), -1);
  for (const PipelineSlots::Slot& slot : slots.slots) {
    if (slot.message) posted_[static_cast<std::size_t>(slot.after[0])] = 0;
  }
}

void StageHosts::receive(const PipelineSlots::Slot& pass, PassTurn& turn) {
  if (arrived_.empty()) return;
  HostClock& clock = of(pass.stage);
  double& sent = arrived_[static_cast<std::size_t>(pass.stage)];
  bool handed = false;
  for (const std::int32_t after : pass.after) {
    handed = handed || (after >= 0 && slots_.slots[static_cast<std::size_t>(after)].message);
  }
  if (handed) {
    turn.ready = std::max(turn.ready, clock.add() + rules_.hop);
    if (rules_.waits) clock.wait(turn.ready);
  } else if (rules_.waits) {
    clock.wait(sent);
  }
  sent = -1;
}

void StageHosts::post(const PipelineSlots::Slot& pass) {
  if (arrived_.empty()) return;
  double& posted = posted_[number(pass)];
  if (posted >= 0) posted = of(pass.stage).add();
}

double StageHosts::posted(const PipelineSlots::Slot& message) const {
  return posted_.empty() ? 0 : posted_[static_cast<std::size_t>(message.after[0])];
}

void StageHosts::arrived(const PipelineSlots::Slot& message, double end) {
  if (!arrived_.empty()) arrived_[static_cast<std::size_t>(message.stage)] = end;
}

}  // namespace shardwise
