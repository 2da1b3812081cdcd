#include "planner/cost/step/host_issue.h"

#include <span>

namespace shardwise {

bool waits_for_messages(const TimeRules& rules, const Layout& layout) {
  return rules.waits_for_messages && layout.pp > 1 && layout.vpp == 1 &&
         layout.schedule == PipelineSchedule::one_f_one_b;
}

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
  pass.backward_input = again.then(
      {backward - layer.time.weight_gradient, kernels.backward - kernels.weights, rules.issue});
  pass.backward_weight = {layer.time.weight_gradient, kernels.weights, rules.issue};
  return pass;
}

std::vector<IssuedPass> issued_chunks(const PipelineTimes& pipeline, const HostRules& rules) {
  std::vector<IssuedPass> layers;
  layers.reserve(pipeline.layers.size());
  for (const LayerPace& layer : pipeline.layers) layers.push_back(issued_layer(layer, rules));
  std::vector<IssuedPass> chunks(pipeline.chunk_time.size());
  for (std::size_t place = 0; place < chunks.size(); ++place) {
    const std::span<const PacedRun> runs = pipeline.runs_of(place);
    for (const auto pass : {&IssuedPass::forward, &IssuedPass::backward,
                            &IssuedPass::backward_input, &IssuedPass::backward_weight}) {
      const bool forward = pass == &IssuedPass::forward;
      IssuedKernels& all = chunks[place].*pass;
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const PacedRun& run = runs[forward ? r : runs.size() - 1 - r];
        all = all.then((layers[static_cast<std::size_t>(run.kind)].*pass).times(run.layers));
      }
    }
  }
  return chunks;
}

double pass_messages(const PipelineTimes& pipeline, const HostRules& rules) {
  return pipeline.slots->stages > 1 ? 2 * rules.issue : 0;
}

bool issues_late(const PipelineTimes& pipeline, const HostRules& rules) {
  if (rules.issue <= 0) return false;
  const double messages = pass_messages(pipeline, rules);
  return std::ranges::any_of(issued_chunks(pipeline, rules), [&](const IssuedPass& chunk) {
    return chunk.forward.issue + messages > chunk.forward.runs ||
           chunk.backward.issue + messages > chunk.backward.runs;
  });
}

StageHosts::StageHosts(const PipelineTimes& pipeline, const HostRules& rules)
    : slots_(pipeline.slots.get()),
      rules_(rules),
      clocks_(static_cast<std::size_t>(slots_->stages), HostClock(rules.issue)) {
  if (!on() || slots_->stages == 1) return;
  arrived_.resize(clocks_.size(), -1);
  last_.resize(clocks_.size(), kNone);
  posted_.resize(slots_->slots.size());
  hands_on_.resize(slots_->slots.size());
  for (const PipelineSlots::Slot& slot : slots_->slots) {
    if (slot.message) hands_on_[static_cast<std::size_t>(slot.after[0])] = true;
  }
  if (!rules.waits) post_receives(pipeline);
}

/// A host that never waits issues passes at moments that nothing else changes. It posts a receive
/// before the pass that needs it, or one that needs a later message of the same sender. All slots
/// are first taken to come once; loops then move those after them.
void StageHosts::post_receives(const PipelineTimes& pipeline) {
  const std::vector<PipelineSlots::Slot>& slots = slots_->slots;
  const std::vector<IssuedPass> chunks = issued_chunks(pipeline, rules_);
  std::vector<HostClock> clocks = clocks_;
  std::vector<double> loop_begins(clocks.size());
  auto loop = slots_->loops.begin();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const PipelineSlots::Slot& slot = slots[i];
    if (loop != slots_->loops.end() && i == loop->begin) {
      std::ranges::transform(clocks, loop_begins.begin(), &HostClock::issued);
    }
    if (!slot.message) {
      HostClock& clock = clocks[static_cast<std::size_t>(slot.stage)];
      for (const std::int32_t after : slot.after) {
        const bool handed = after >= 0 && slots[static_cast<std::size_t>(after)].message;
        if (handed) posted_[static_cast<std::size_t>(after)] = clock.add();
      }
      const std::int32_t place = slot.stage * slots_->chunks + slot.chunk;
      clock.run(chunks[static_cast<std::size_t>(place)].of(slot.part), 0);
      if (hands_on_[i]) clock.add();
    }
    if (loop == slots_->loops.end() || i + 1 < loop->end()) continue;
    for (std::size_t s = 0; s < clocks.size(); ++s) {
      paces_.push_back(clocks[s].issued() - loop_begins[s]);
    }
    ++loop;
  }
  std::vector<double> earliest(clocks.size() * clocks.size(), -1);  // by sender and receiver
  for (std::size_t i = slots.size(); i-- > 0;) {
    if (!slots[i].message) continue;
    const std::size_t pair = static_cast<std::size_t>(slots[i].stage) * clocks.size() +
                             static_cast<std::size_t>(slots[i].to);
    double& known = earliest[pair];
    if (known >= 0) posted_[i] = std::min(posted_[i], known);
    known = posted_[i];
  }
  for (std::size_t l = 0; l < slots_->loops.size(); ++l) {
    const auto times = static_cast<double>(slots_->loops[l].times - 1);
    for (std::size_t i = slots_->loops[l].end(); i < slots.size(); ++i) {
      const std::size_t to = static_cast<std::size_t>(slots[i].to);
      if (slots[i].message) posted_[i] += times * paces_[l * clocks.size() + to];
    }
  }
}

void StageHosts::repeat(const PipelineSlots::Loop& loop) {
  if (posted_.empty()) return;
  for (std::size_t i = loop.begin - loop.window; i < loop.begin; ++i) {
    posted_[i] = posted_[i + loop.length];
  }
  const auto number = static_cast<std::size_t>(&loop - slots_->loops.data());
  for (std::size_t i = loop.begin; i < loop.end() && !paces_.empty(); ++i) {
    const auto to = static_cast<std::size_t>(slots_->slots[i].to);
    if (slots_->slots[i].message) posted_[i] += paces_[number * clocks_.size() + to];
  }
  for (std::int32_t& last : last_) {
    if (last != kNone) last -= static_cast<std::int32_t>(loop.length);
  }
}

void StageHosts::visit(StateVisit& state, const PipelineSlots::Loop& loop) {
  for (HostClock& clock : clocks_) clock.visit(state, rules_.waits);
  if (posted_.empty()) return;
  for (double& arrived : arrived_) state.clock(arrived);
  for (const std::int32_t last : last_) state.mark(last);
  for (std::size_t i = std::min(loop.begin, loop.end() - loop.window); i < loop.end(); ++i) {
    rules_.waits ? state.clock(posted_[i]) : state.alone(posted_[i]);
  }
}

void StageHosts::receive(const PipelineSlots::Slot& pass, PassTurn& turn) {
  if (arrived_.empty()) return;
  HostClock& clock = of(pass.stage);
  double& sent = arrived_[static_cast<std::size_t>(pass.stage)];
  bool handed = false;
  for (const std::int32_t after : pass.after) {
    handed = handed || (after >= 0 && slots_->slots[static_cast<std::size_t>(after)].message);
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
  last_[static_cast<std::size_t>(pass.stage)] = static_cast<std::int32_t>(number(pass));
  if (hands_on_[number(pass)]) posted_[number(pass)] = of(pass.stage).add();
}

double StageHosts::posted(const PipelineSlots::Slot& message) const {
  if (posted_.empty()) return 0;
  return std::max(posted_[static_cast<std::size_t>(message.after[0])], posted_[number(message)]);
}

void StageHosts::arrived(const PipelineSlots::Slot& message, double end) {
  const auto sender = static_cast<std::size_t>(message.stage);
  if (!arrived_.empty() && last_[sender] == message.after[0]) arrived_[sender] = end;
}

}  // namespace shardwise
