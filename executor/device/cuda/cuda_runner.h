#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/device/cuda/cuda_graph.h"
#include "executor/device/cuda/cuda_stream.h"
#include "executor/device/cuda/event_plan.h"
#include "executor/engine/program_runner.h"

namespace shardwise::exec {

/// Runs programs on the streams of a GPU from the calling thread, which issues all operations in
/// program order and then waits for the end of the step alone. Operations wait by events
/// (event_plan()). Streams other than compute have high priority.
///
/// After kGraphAfter unrecorded runs of a program its step is a graph, if it can be one.
class CudaRunner : public ProgramRunner {
 public:
  static constexpr int kGraphAfter = 2;
  /// A graph says nothing of its operations: it counts as at work for as many times what its step
  /// took before.
  static constexpr std::int64_t kSlowest = 10;

  /// \param rank  for messages  \param no_graph  why no step is to be a graph; empty: they may
  /// \throws CudaError
  CudaRunner(const std::vector<const StageProgram*>& programs, int rank, AbortSignal& abort,
             const std::string& no_graph);
  ~CudaRunner() override;

  void run(std::size_t program, const OpKernels& kernels, Spans spans) override;
  std::span<const OpSpan> spans() const override { return spans_; }
  bool recording_takes_time() const override { return true; }
  /// Whether steps are a graph, and why not.
  std::string how_it_runs(std::size_t program) const override;
  /// Whether the program's next unrecorded run is a graph's launch.
  bool has_graph(std::size_t program) const { return bound_[program].graph != nullptr; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Bound {
    const StageProgram* program = nullptr;
    EventPlan plan;
    std::string no_graph;        // why its step is no graph; empty: it will be
    int runs = 0;                // unrecorded ones
    std::int64_t issued_ns = 0;  // that the last step took which was issued, not launched
    std::unique_ptr<CudaGraph> graph;
  };
  /// Events of an operation in a recorded run.
  struct Timed {
    explicit Timed(const CudaCalls& calls)
        : begin(calls, true), ready(calls, true), end(calls, true) {}
    CudaEvent begin;
    CudaEvent ready;
    CudaEvent end;
  };

  void run_step(Bound& bound, const OpKernels& kernels, Spans spans);
  void issue(const Bound& bound, const OpKernels& kernels, bool timed);
  void issue_op(const OpKernel& kernel, std::uint32_t op, CudaStream& stream, bool timed);
  void await_end(const Bound& bound);
  void read_spans(const Bound& bound, std::int64_t zero);
  CudaStream& stream_of(const StageProgram& program, std::uint32_t op);
  void tell(RankStatus& status) const;
  std::string describe() const;

  CudaCalls calls_;
  AbortSignal& abort_;
  std::vector<Bound> bound_;
  std::array<std::unique_ptr<CudaStream>, kStreams> streams_;  // those that programs use
  std::vector<std::unique_ptr<CudaEvent>> events_;             // by operation that records
  std::vector<std::unique_ptr<Timed>> timed_;                  // by operation, once needed
  CudaEvent begin_;
  CudaEvent begin_timed_;
  CudaEvent end_;
  std::vector<OpSpan> spans_;

  // State for who looks from another thread.
  std::atomic<std::int64_t> since_{0};  // that nothing was issued or ended; 0: between two steps
  std::atomic<std::int64_t> begun_{0};  // the step
  std::atomic<const StageProgram*> running_{nullptr};
  std::atomic<std::int64_t> steps_{0};         // run() so far
  std::atomic<bool> launched_{false};          // the step is a graph's launch
  std::atomic<std::uint32_t> issuing_{kNone};  // kNone: all of the step is issued
  std::shared_ptr<void> watched_;
};

}  // namespace shardwise::exec
