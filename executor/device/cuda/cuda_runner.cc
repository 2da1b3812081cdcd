#include "executor/device/cuda/cuda_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "executor/comm/failure_line.h"
#include "executor/status/rank_status.h"

namespace shardwise::exec {

CudaRunner::CudaRunner(const std::vector<const StageProgram*>& programs, int rank,
                       AbortSignal& abort, const std::string& no_graph)
    : calls_(rank),
      abort_(abort),
      begin_(calls_, false),
      begin_timed_(calls_, true),
      end_(calls_, false) {
  const auto open = [&](Stream stream) {
    std::unique_ptr<CudaStream>& opened = streams_[static_cast<std::size_t>(stream)];
    const bool computes = stream == Stream::compute;
    if (opened) return;
    opened = std::make_unique<CudaStream>(calls_,
                                          computes ? StreamPriority::normal : StreamPriority::high);
  };
  open(Stream::compute);
  for (const StageProgram* program : programs) {
    Bound& bound = bound_.emplace_back();
    bound.program = program;
    bound.plan = event_plan(*program);
    bound.no_graph = no_graph.empty() ? capture_problem(*program) : no_graph;
    events_.resize(std::max(events_.size(), program->operations.size()));
    for (std::size_t op = 0; op < program->operations.size(); ++op) {
      open(program->operations[op].stream);
      if (bound.plan.ops[op].records && !events_[op]) {
        events_[op] = std::make_unique<CudaEvent>(calls_, false);
      }
    }
  }
  timed_.resize(events_.size());
  watched_ =
      abort.watch({rank,
                   [this] {
                     const std::int64_t since = since_;
                     return since == 0 ? now_ns() : since;
                   },
                   [this] { return describe(); }, [this](RankStatus& status) { tell(status); }});
}

CudaRunner::~CudaRunner() {
  watched_.reset();
  // A communicator that is aborted waits for the graphs that hold it: they go first, those under
  // way when they are over.
  for (Bound& each : bound_) each.graph.reset();
  // Kernels under way read what the owner frees next. Errors have been said where they came from.
  for (const std::unique_ptr<CudaStream>& stream : streams_) {
    if (stream) static_cast<void>(cudaStreamSynchronize(stream->handle()));
  }
}

CudaStream& CudaRunner::stream_of(const StageProgram& program, std::uint32_t op) {
  return *streams_[static_cast<std::size_t>(program.operations[op].stream)];
}

void CudaRunner::issue_op(const OpKernel& kernel, std::uint32_t op, CudaStream& stream,
                          bool timed) {
  if (timed) timed_[op]->begin.record(stream);
  if (kernel.prepare) kernel.prepare(stream);
  if (timed) timed_[op]->ready.record(stream);
  kernel.run(stream);
  calls_.check(cudaGetLastError(), "a kernel's launch");
  if (timed) timed_[op]->end.record(stream);
}

void CudaRunner::issue(const Bound& bound, const OpKernels& kernels, bool timed) {
  const StageProgram& program = *bound.program;
  const CudaStream& compute = *streams_[static_cast<std::size_t>(Stream::compute)];
  begin_.record(compute);
  for (std::uint32_t op = 0; op < program.operations.size(); ++op) {
    issuing_ = op;
    since_ = now_ns();
    const EventPlan::Op& plan = bound.plan.ops[op];
    CudaStream& stream = stream_of(program, op);
    if (plan.after_begin) begin_.hold(stream);
    for (const std::uint32_t wait : plan.waits) events_[wait]->hold(stream);
    issue_op(kernels[op], op, stream, timed);
    if (plan.records) events_[op]->record(stream);
  }
  for (const std::uint32_t join : bound.plan.joins) events_[join]->hold(compute);
  issuing_ = kNone;
}

/// Asks instead of waiting, so that a failure elsewhere ends it, and notes what has ended.
void CudaRunner::await_end(const Bound& bound) {
  const std::vector<EventPlan::Op>& ops = bound.plan.ops;
  std::size_t next = 0;
  while (!end_.over()) {
    abort_.check();
    const std::int64_t now = now_ns();
    if (launched_) {
      if (now - begun_ < kSlowest * bound.issued_ns) since_ = now;
    } else {
      for (; next < ops.size() && (!ops[next].records || events_[next]->over()); ++next) {
        since_ = now;
      }
    }
    std::this_thread::yield();
  }
}

void CudaRunner::read_spans(const Bound& bound, std::int64_t zero) {
  spans_.resize(bound.program->operations.size());
  for (std::size_t op = 0; op < spans_.size(); ++op) {
    const Timed& timed = *timed_[op];
    spans_[op].begin = zero + timed.begin.since(begin_timed_);
    spans_[op].ready = zero + timed.ready.since(begin_timed_);
    spans_[op].met = spans_[op].ready;
    spans_[op].end = zero + timed.end.since(begin_timed_);
  }
}

void CudaRunner::run_step(Bound& bound, const OpKernels& kernels, Spans spans) {
  const CudaStream& compute = *streams_[static_cast<std::size_t>(Stream::compute)];
  const bool timed = spans == Spans::recorded;
  spans_.clear();
  std::int64_t zero = 0;
  if (timed) {
    for (std::size_t op = 0; op < bound.program->operations.size(); ++op) {
      if (timed_[op]) continue;
      timed_[op] = std::make_unique<Timed>(calls_);
    }
    // Both clocks are read at one moment: nothing is under way.
    begin_timed_.record(compute);
    begin_timed_.synchronize();
    zero = now_ns();
    issue(bound, kernels, true);
  } else {
    const bool now_graph = bound.no_graph.empty() && bound.runs++ >= kGraphAfter;
    if (now_graph && !bound.graph) {
      bound.graph =
          std::make_unique<CudaGraph>(calls_, compute, [&] { issue(bound, kernels, false); });
    }
    if (bound.graph) {
      launched_ = true;
      bound.graph->launch(compute);
    } else {
      issue(bound, kernels, false);
    }
  }
  end_.record(compute);
  await_end(bound);
  if (!launched_) bound.issued_ns = now_ns() - begun_;
  if (timed) read_spans(bound, zero);
}

void CudaRunner::run(std::size_t program, const OpKernels& kernels, Spans spans) {
  abort_.check();
  Bound& bound = bound_[program];
  running_ = bound.program;
  ++steps_;
  launched_ = false;
  since_ = now_ns();
  begun_ = since_.load();
  try {
    run_step(bound, kernels, spans);
  } catch (const Aborted&) {
    since_ = 0;
    throw;
  } catch (const std::exception& broken) {
    const std::uint32_t op = issuing_;
    const std::string where =
        op == kNone ? "the step" : name_of(*bound.program, bound.program->operations[op]);
    abort_.raise(failure_of(calls_.rank(), where, broken));
  }
  since_ = 0;
  abort_.check();
}

std::string CudaRunner::how_it_runs(std::size_t program) const {
  const std::string& reason = bound_[program].no_graph;
  return reason.empty() ? "steady steps are launched as one CUDA graph"
                        : fmt::format("steps are no CUDA graph: {}", reason);
}

/// The host issues the operations of all streams; once that is over, the GPU runs them.
void CudaRunner::tell(RankStatus& status) const {
  const StageProgram* const program = running_;
  if (since_ == 0 || program == nullptr) return;
  const std::uint32_t op = issuing_;
  StreamStatus& one = status.streams.emplace_back();
  one.stream = op == kNone ? "GPU" : "host";
  one.operation = op == kNone ? (launched_ ? "the step's graph" : "what is left of the step")
                              : name_of(*program, program->operations[op]);
  one.since_s = std::max(0.0, static_cast<double>(now_ns() - begun_) * 1e-9);
}

std::string CudaRunner::describe() const {
  const std::int64_t since = since_;
  const StageProgram* const program = running_;
  if (since == 0 || program == nullptr) {
    return "between two steps";
  }
  const std::uint32_t op = issuing_;
  const double seconds = static_cast<double>(now_ns() - begun_) * 1e-9;
  if (op == kNone) {
    return fmt::format("the GPU runs step {} of this process, {} operations{}, for {:.1f} s",
                       steps_.load(), program->operations.size(), launched_ ? " as a graph" : "",
                       seconds);
  }
  return fmt::format("issues {} of step {} of this process, for {:.1f} s in it",
                     name_of(*program, program->operations[op]), steps_.load(), seconds);
}

}  // namespace shardwise::exec
