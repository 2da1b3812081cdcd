#include "planner/recorded/step_parts.h"

#include <algorithm>

#include "planner/recorded/predecessors.h"
#include "planner/recorded/stage_timeline.h"

namespace shardwise {
namespace {

bool is_message(const ProgramOp& op) {
  return op.stream == Stream::send || op.stream == Stream::receive;
}

class Parts {
 public:
  Parts(const RecordedStep& step, StepFacts& facts)
      : step_(step),
        facts_(facts),
        predecessors_(step),
        stages_(std::ranges::any_of(step.program->operations, is_message)) {}

  TimeParts find() {
    double free_at = 0;
    for (std::uint32_t op = 0; op < step_.spans.size(); ++op) {
      if (op_at(op).stream != Stream::compute) continue;
      const RecordedSpan& span = step_.spans[op];
      explain_gap(op, free_at, span.begin);
      facts_.file(op_at(op), op, span, parts_);
      free_at = span.end;
    }
    explain_tail(free_at);
    return parts_;
  }

 private:
  const ProgramOp& op_at(std::uint32_t op) const { return step_.program->operations[op]; }

  /// What an operation waits for while another rank of its group is not ready.
  Seconds TimeParts::*waiting_part(const ProgramOp& op) const {
    const std::vector<CollectiveWork>& work =
        step_.program->costs[static_cast<std::size_t>(op.cost)].collectives;
    const bool other_stages =
        is_message(op) || (!work.empty() && (work.front().group == GroupKind::pp ||
                                             (work.front().group == GroupKind::world && stages_)));
    return other_stages ? &TimeParts::bubble : &TimeParts::straggler;
  }

  /// Files [from, to) as far as an operation filled it, from its end back. \returns when it began
  double explain_by(std::uint32_t cause, double from, double to) {
    const ProgramOp& op = op_at(cause);
    const RecordedSpan& span = step_.spans[cause];
    const auto until = [&](double moment, Seconds TimeParts::*part) {
      const double at = std::clamp(moment, from, to);
      parts_.*part += Seconds(to - at);
      to = at;
    };
    until(span.met, part_of(op.stream));
    until(span.ready, waiting_part(op));
    until(span.begin, part_of(op.role));
    return to;
  }

  /// Why `op` did not run between `from` and `to`.
  void explain_gap(std::uint32_t op, double from, double to) {
    while (to > from) {
      const std::uint32_t cause = predecessors_.latest_before(op);
      const double ready = cause == kNoOperation ? from : std::max(from, step_.spans[cause].end);
      if (to > ready) {
        parts_.*(cause == kNoOperation ? &TimeParts::launch : facts_.late_part(op, to)) +=
            Seconds(to - ready);
        to = ready;
      }
      if (cause == kNoOperation || to <= from) return;
      to = explain_by(cause, from, to);
      op = cause;
    }
  }

  /// After the last kernel: this rank's communication, then what follows its last operation.
  void explain_tail(double from) {
    const std::uint32_t last = predecessors_.last();
    const double end = last == kNoOperation ? from : std::max(from, step_.spans[last].end);
    parts_.*facts_.after_last() += Seconds(std::max(0.0, step_.length - end));
    if (end > from) explain_gap(last, from, explain_by(last, from, end));
  }

  const RecordedStep& step_;
  StepFacts& facts_;
  Predecessors predecessors_;
  bool stages_;  // there are several
  TimeParts parts_;
};

}  // namespace

void StepFacts::file(const ProgramOp& op, std::uint32_t /*number*/, const RecordedSpan& span,
                     TimeParts& parts) {
  parts.*part_of(op.role) += Seconds(span.end - span.begin);
}

Seconds TimeParts::*StepFacts::late_part(std::uint32_t /*op*/, double /*to*/) const {
  return &TimeParts::launch;
}

Seconds TimeParts::*StepFacts::after_last() const { return &TimeParts::input_exposed; }

TimeParts step_parts(const RecordedStep& step, StepFacts& facts) {
  return Parts(step, facts).find();
}

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

}  // namespace shardwise
