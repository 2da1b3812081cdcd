#include "simulator/clock/stage_summary.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "planner/recorded/stage_timeline.h"
#include "planner/recorded/step_parts.h"
#include "simulator/workload/paint.h"
#include "simulator/workload/pass_parts.h"

namespace shardwise::sim {
namespace {

const CostPrice& price_of(const StageRunTimes& run, const ProgramOp& op) {
  return run.work->prices[static_cast<std::size_t>(op.cost)];
}

/// What the simulator knows of a rank's step: what kernels take alone, of which communication of
/// the layer is a part, and when the host issued them.
class SimulatedFacts final : public StepFacts {
 public:
  SimulatedFacts(const StageRunTimes& run, std::span<const LayerTime> layers,
                 const ScaledTransfers* scaled)
      : run_(run), layers_(layers), scaled_(scaled) {
    // Gathers and reductions; the norm that all ranks sum runs beside nothing.
    const bool data_parallel =
        std::ranges::any_of(run.work->program->operations, [](const ProgramOp& op) {
          return part_of(op.stream) == &TimeParts::dp_exposed &&
                 part_of(op.role) == &TimeParts::dp_exposed;
        });
    if (!data_parallel) beside_ = &TimeParts::pp_exposed;
  }

  void file(const ProgramOp& op, std::uint32_t number, const RecordedSpan& span,
            TimeParts& parts) override {
    const OpCost& cost = run_.work->program->costs[static_cast<std::size_t>(op.cost)];
    const double alone = price_of(run_, op).seconds;
    const double took = span.end - span.begin;
    const auto add = [&parts](Seconds TimeParts::*part, double seconds) {
      parts.*part += Seconds(seconds);
    };
    if (!cost.collectives.empty()) {
      // A collective on the compute stream stops it: waiting for the others, then moving.
      const double moved = std::min(took, alone);
      add(part_of(op.role), moved);
      add(&TimeParts::bubble, took - moved);
      return;
    }
    const double late = late_issue(number, alone);
    // Beyond its time alone: the multiprocessors that communication took.
    add(beside_, std::max(0.0, took - late - alone));
    add(&TimeParts::launch, late);
    const double work = std::min(took - late, alone);
    const double steady = work / (1 + price_of(run_, op).excess);
    add(&TimeParts::straggler, work - steady);
    const WithinPass moved = within(op, Seconds(steady));
    const auto take = [&](Seconds TimeParts::*part, WithinLayers& axis, const WithinLayers& found) {
      parts.*part += found.exposed;
      axis.alone += found.alone;
      axis.exposed += found.exposed;
    };
    take(&TimeParts::tp_exposed, within_.tp, moved.tp);
    take(&TimeParts::cp_exposed, within_.cp, moved.cp);
    take(&TimeParts::ep_exposed, within_.ep, moved.ep);
    parts.*part_of(op.role) += std::max(Seconds(0), Seconds(steady) - moved.exposed);
  }

  /// What an operation of the compute stream has inside.
  WithinPass within(std::uint32_t number) const {
    const ProgramOp& op = run_.work->program->operations[number];
    const double alone = price_of(run_, op).seconds;
    const double took = run_.end[number] - run_.start[number];
    const double work = std::min(took - late_issue(number, alone), alone);
    return within(op, Seconds(work / (1 + price_of(run_, op).excess)));
  }

  Seconds TimeParts::*late_part(std::uint32_t op, double to) const override {
    return to <= issued(run_.work->issued, op) ? &TimeParts::launch : &TimeParts::bubble;
  }

  Seconds TimeParts::*after_last() const override { return &TimeParts::bubble; }

  /// Of what was filed.
  StepParts within_layers() const { return within_; }

 private:
  /// The communication that held up a whole layer's kernels, of `steady` that they took in all.
  WithinPass within(const ProgramOp& op, Seconds steady) const {
    const OpCost& cost = run_.work->program->costs[static_cast<std::size_t>(op.cost)];
    if (cost.layers.empty()) return {};
    const LayerWork& work = cost.layers.front();
    const LayerTime& layer = layers_[static_cast<std::size_t>(work.kind)];
    // The input gradients carry the communication of a split backward pass.
    if (work.part == LayerPart::backward_weight) return {};
    PassTime pass = pass_of(layer, work.part);
    const Seconds planned = pass.exposed();
    if (scaled_ != nullptr) scale(op, work, pass);
    const Seconds alone = alone_of(layer, work.part) - (planned - pass.exposed());
    if (alone <= Seconds(0)) return {};
    const double times = steady / alone;
    const auto of_axis = [times](Seconds stops, Seconds beside) {
      return WithinLayers{(stops + beside) * times, stops * times};
    };
    return {of_axis(pass.tp, pass.tp_hidden), of_axis(pass.cp, pass.cp_hidden),
            of_axis(pass.ep, {}), pass.exposed() * times};
  }

  /// Gives the communication of a pass the share of its time that scales have left each axis. One
  /// of the operation's kind has changed all of the pass alike, and no share of it.
  void scale(const ProgramOp& op, const LayerWork& work, PassTime& pass) const {
    double whole = 1;
    for (const PriceScale& each : scaled_->scales) {
      const auto* const kind = std::get_if<Paint>(&each.what);
      if (kind != nullptr && paint_of(op) == *kind) whole *= each.factor;
    }
    const IndexRange inside = price_of(run_, op).inside;
    if (inside.begin == inside.end) return;
    const std::vector<InsideTransfer> axes = scaled_->planned.of(work).axes;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].seconds <= 0) continue;
      const double left = run_.work->prices[inside.begin + a].seconds / (axes[a].seconds * whole);
      if (axes[a].axis == Stream::tensor_parallel) {
        pass.tp = pass.tp * left;
        pass.tp_hidden = pass.tp_hidden * left;
      } else if (axes[a].axis == Stream::context_parallel) {
        pass.cp = pass.cp * left;
        pass.cp_hidden = pass.cp_hidden * left;
      } else if (axes[a].axis == Stream::expert_parallel) {
        pass.ep = pass.ep * left;
      }
    }
  }

  /// When the host has issued a kernel of an operation. \param after  its own wait before that, by
  /// operation; empty where all is issued at once
  double issued(const std::vector<double>& after, std::uint32_t op) const {
    if (after.empty()) return 0;
    const std::uint32_t from = run_.work->issued_from[op];
    return after[op] + (from == kFromBegin ? 0 : run_.end[from]);
  }

  /// How long an operation was held up because its last kernel was issued late.
  double late_issue(std::uint32_t op, double alone) const {
    if (run_.end[op] > issued(run_.work->issued_last, op)) return 0;
    return std::max(0.0, run_.end[op] - run_.start[op] - alone);
  }

  const StageRunTimes& run_;
  std::span<const LayerTime> layers_;
  const ScaledTransfers* scaled_;
  Seconds TimeParts::*beside_ = &TimeParts::dp_exposed;  // of what compute loses to communication
  StepParts within_;
};

/// The meeting that an operation takes part in, kNoRendezvous for none.
std::uint32_t meeting_of(const StageRunTimes& run, std::uint32_t op) {
  const std::int32_t slot = run.work->slot_of[op];
  if (slot < 0) return kNoRendezvous;
  const Slot& meets = run.workload->slots[static_cast<std::size_t>(slot)];
  return meets.first_meeting + run.workload->group_at(*run.actor, meets);
}

}  // namespace

std::vector<double> meeting_times(const Workload& work, const Timeline& timeline) {
  std::vector<double> met(work.meetings, 0.0);
  for (const Actor& actor : work.actors) {
    for (const WorkOp& op : work.programs[actor.program].operations) {
      if (op.slot < 0) continue;
      const Slot& slot = work.slots[static_cast<std::size_t>(op.slot)];
      double& last = met[slot.first_meeting + work.group_at(actor, slot)];
      last = std::max(last, timeline.start[actor.base + op.index]);
    }
  }
  return met;
}

RecordedSpan span_of(const StageRunTimes& run, std::uint32_t op) {
  const double start = run.start[op];
  const std::uint32_t meeting = meeting_of(run, op);
  return {start, start, meeting == kNoRendezvous ? start : run.met[meeting], run.end[op]};
}

RecordedStep recorded(const StageRunTimes& run) {
  RecordedStep step{run.work->program, {}, run.length, run.work->issued_from, {}};
  step.spans.reserve(run.start.size());
  step.rendezvous.reserve(run.start.size());
  for (std::uint32_t op = 0; op < run.start.size(); ++op) {
    step.spans.push_back(span_of(run, op));
    step.rendezvous.push_back(meeting_of(run, op));
  }
  return step;
}

StepParts step_parts(const StageRunTimes& run, std::span<const LayerTime> layers,
                     const ScaledTransfers* scaled) {
  SimulatedFacts facts(run, layers, scaled);
  const TimeParts time = shardwise::step_parts(recorded(run), facts);
  StepParts parts = facts.within_layers();
  parts.time = time;
  return parts;
}

std::vector<WithinPass> within_passes(const StageRunTimes& run, std::span<const LayerTime> layers,
                                      const ScaledTransfers* scaled) {
  const SimulatedFacts facts(run, layers, scaled);
  std::vector<WithinPass> found(run.start.size());
  for (std::uint32_t op = 0; op < found.size(); ++op) {
    if (run.work->program->operations[op].stream == Stream::compute) found[op] = facts.within(op);
  }
  return found;
}

}  // namespace shardwise::sim
