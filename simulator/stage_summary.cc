#include "simulator/stage_summary.h"

#include <algorithm>
#include <cstddef>

#include "planner/recorded/stage_timeline.h"

namespace shardwise::sim {
namespace {

constexpr std::uint32_t kNothing = static_cast<std::uint32_t>(-1);

const CostPrice& price_of(const StageRunTimes& run, const ProgramOp& op) {
  return run.work->prices[static_cast<std::size_t>(op.cost)];
}

/// What the compute stream waits for when it waits for an operation of this stream.
Seconds TimeParts::*part_of(Stream stream) {
  switch (stream) {
    case Stream::copy:
    case Stream::all_gather:
    case Stream::reduce_scatter:
    case Stream::outer_reduce:
      return &TimeParts::dp_exposed;
    case Stream::tensor_parallel:
      return &TimeParts::tp_exposed;
    case Stream::context_parallel:
      return &TimeParts::cp_exposed;
    case Stream::expert_parallel:
      return &TimeParts::ep_exposed;
    case Stream::send:
    case Stream::receive:
      return &TimeParts::pp_exposed;
    case Stream::host_copy:
      return &TimeParts::offload_exposed;
    case Stream::compute:
      break;
  }
  return &TimeParts::bubble;
}

const PassTime& pass_of(const LayerTime& layer, LayerPart part) {
  if (part == LayerPart::forward) return layer.forward;
  return part == LayerPart::recompute ? layer.recompute : layer.backward;
}

/// How long a part of a pass takes by itself.
Seconds alone_of(const LayerTime& layer, LayerPart part) {
  if (part == LayerPart::backward_weight) return layer.weight_gradient;
  const Seconds whole = pass_of(layer, part).stream();
  return part == LayerPart::backward_input ? whole - layer.weight_gradient : whole;
}

class Parts {
 public:
  Parts(const StageRunTimes& run, std::span<const LayerTime> layers) : run_(run), layers_(layers) {
    const WorkProgram& work = *run.work;
    before_.assign(work.operations.size(), kNothing);
    for (std::size_t s = 0; s < kStreams; ++s) {
      for (std::uint32_t i = work.stream_begin[s] + 1; i < work.stream_begin[s + 1]; ++i) {
        before_[work.operations[i].index] = work.operations[i - 1].index;
      }
    }
    // Gathers and reductions; the norm that all ranks sum runs beside nothing.
    const bool data_parallel = std::ranges::any_of(work.program->operations, [](const auto& op) {
      return part_of(op.stream) == &TimeParts::dp_exposed &&
             part_of(op.role) == &TimeParts::dp_exposed;
    });
    if (!data_parallel) beside_ = &TimeParts::pp_exposed;
  }

  StepParts find() {
    const WorkProgram& work = *run_.work;
    double free_at = 0;
    for (std::uint32_t i = work.stream_begin[0]; i < work.stream_begin[1]; ++i) {
      const std::uint32_t op = work.operations[i].index;
      if (run_.start[op] > free_at) explain_gap(op, free_at, run_.start[op]);
      ran(op);
      free_at = run_.end[op];
    }
    explain_tail(free_at);
    return parts_;
  }

 private:
  const ProgramOp& op_at(std::uint32_t op) const { return run_.work->program->operations[op]; }
  void add(Seconds TimeParts::*part, double seconds) { parts_.time.*part += Seconds(seconds); }
  void add(Seconds TimeParts::*part, Seconds time) { parts_.time.*part += time; }

  /// A kernel, or a whole layer, on the compute stream.
  void ran(std::uint32_t index) {
    const ProgramOp& op = op_at(index);
    const OpCost& cost = run_.work->program->costs[static_cast<std::size_t>(op.cost)];
    const double alone = price_of(run_, op).seconds;
    const double took = run_.end[index] - run_.start[index];
    if (!cost.collectives.empty()) {
      // A collective on the compute stream stops it: waiting for the others, then moving.
      const double moved = std::min(took, alone);
      add(part_of(op.role), moved);
      add(&TimeParts::bubble, took - moved);
      return;
    }
    const double late = late_issue(index, alone);
    // Beyond its time alone: the multiprocessors that communication took.
    add(beside_, std::max(0.0, took - late - alone));
    add(&TimeParts::launch, late);
    const double work = std::min(took - late, alone);
    const double steady = work / (1 + price_of(run_, op).excess);
    add(&TimeParts::straggler, work - steady);
    const Seconds computed = Seconds(steady) - communicated(cost, Seconds(steady));
    add(part_of(op.role), std::max(Seconds(0), computed));
  }

  /// The communication that held up a whole layer's kernels, of `steady` that they took in all.
  Seconds communicated(const OpCost& cost, Seconds steady) {
    if (cost.layers.empty()) return {};
    const LayerWork& work = cost.layers.front();
    const LayerTime& layer = layers_[static_cast<std::size_t>(work.kind)];
    const Seconds alone = alone_of(layer, work.part);
    // The input gradients carry the communication of a split backward pass.
    if (alone <= Seconds(0) || work.part == LayerPart::backward_weight) return {};
    const PassTime& pass = pass_of(layer, work.part);
    const double times = steady / alone;
    const auto take = [&](Seconds TimeParts::*part, WithinLayers& axis, Seconds stops,
                          Seconds beside) {
      add(part, stops * times);
      axis.alone += (stops + beside) * times;
      axis.exposed += stops * times;
    };
    take(&TimeParts::tp_exposed, parts_.tp, pass.tp, pass.tp_hidden);
    take(&TimeParts::cp_exposed, parts_.cp, pass.cp, pass.cp_hidden);
    take(&TimeParts::ep_exposed, parts_.ep, pass.ep, {});
    return pass.exposed() * times;
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

  /// The operation before `op` that ended last: on its stream, among those it waited for, or the
  /// one for which the host waited before it issued this.
  std::uint32_t latest_before(std::uint32_t op) const {
    std::uint32_t latest = before_[op];
    const auto take = [&](std::uint32_t other) {
      if (latest == kNothing || run_.end[other] > run_.end[latest]) latest = other;
    };
    for (const std::uint32_t wait : run_.work->program->of(op_at(op).waits)) take(wait);
    const std::vector<std::uint32_t>& from = run_.work->issued_from;
    if (!from.empty() && from[op] != kFromBegin) take(from[op]);
    return latest;
  }

  /// Why `op` did not run between `from` and `to`: follows what it waited for back in time.
  void explain_gap(std::uint32_t op, double from, double to) {
    while (to > from) {
      const std::uint32_t cause = latest_before(op);
      const double ready = cause == kNothing ? from : std::max(from, run_.end[cause]);
      if (to > ready) {
        const bool issued_late = to <= issued(run_.work->issued, op);
        add(issued_late || cause == kNothing ? &TimeParts::launch : &TimeParts::bubble, to - ready);
        to = ready;
      }
      if (cause == kNothing || to <= from) break;
      const double moving = std::clamp(active_start(run_, cause), from, to);
      add(part_of(op_at(cause).stream), to - moving);
      // Before its bytes moved, a message waited for the other stage.
      const double there = std::clamp(run_.start[cause], from, moving);
      add(&TimeParts::bubble, moving - there);
      to = there;
      op = cause;
    }
    if (to > from) add(&TimeParts::bubble, to - from);
  }

  /// After the last kernel: this rank's communication, then waiting for other stages.
  void explain_tail(double from) {
    const std::size_t count = run_.work->operations.size();
    std::uint32_t last = kNothing;
    for (std::uint32_t op = 0; op < count; ++op) {
      if (last == kNothing || run_.end[op] > run_.end[last]) last = op;
    }
    const double end = last == kNothing ? from : std::max(from, run_.end[last]);
    add(&TimeParts::bubble, std::max(0.0, run_.length - end));
    if (end <= from) return;
    const double moving = std::clamp(active_start(run_, last), from, end);
    add(part_of(op_at(last).stream), end - moving);
    const double there = std::clamp(run_.start[last], from, moving);
    add(&TimeParts::bubble, moving - there);
    explain_gap(last, from, there);
  }

  const StageRunTimes& run_;
  std::span<const LayerTime> layers_;
  Seconds TimeParts::*beside_ = &TimeParts::dp_exposed;  // of what compute loses to communication
  std::vector<std::uint32_t> before_;                    // on the same stream
  StepParts parts_;
};

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

double active_start(const StageRunTimes& run, std::uint32_t index) {
  const std::int32_t slot = run.work->slot_of[index];
  if (slot < 0) return run.start[index];
  const Slot& meets = run.workload->slots[static_cast<std::size_t>(slot)];
  return run.met[meets.first_meeting + run.workload->group_at(*run.actor, meets)];
}

RecordedStep recorded(const StageRunTimes& run) {
  RecordedStep step{run.work->program, {}, run.length};
  step.spans.reserve(run.start.size());
  for (std::uint32_t op = 0; op < run.start.size(); ++op) {
    step.spans.push_back({run.start[op], run.start[op], active_start(run, op), run.end[op]});
  }
  return step;
}

StepParts step_parts(const StageRunTimes& run, std::span<const LayerTime> layers) {
  return Parts(run, layers).find();
}

}  // namespace shardwise::sim
