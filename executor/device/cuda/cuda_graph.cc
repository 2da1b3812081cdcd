#include "executor/device/cuda/cuda_graph.h"

#include <fmt/format.h>

#include <memory>

namespace shardwise::exec {
namespace {

struct Destroy {
  void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
};
using Graph = std::unique_ptr<CUgraph_st, Destroy>;

/// What `issue` issues.
Graph captured(const CudaCalls& calls, const CudaStream& stream,
               const std::function<void()>& issue) {
  // Of this thread alone: other ranks of the process go on with what they do.
  calls.check(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
              "cudaStreamBeginCapture");
  cudaGraph_t made = nullptr;
  try {
    issue();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream.handle(), &made));
    const Graph unused(made);
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(stream.handle(), &made);
  Graph graph(made);
  calls.check(ended, "cudaStreamEndCapture");
  return graph;
}

}  // namespace

std::string capture_problem(const StageProgram& program) {
  for (const ProgramOp& op : program.operations) {
    const OpCost& cost = program.costs[static_cast<std::size_t>(op.cost)];
    if (cost.host_bytes > 0 || cost.host_elements > 0) {
      return fmt::format("{} needs the host within the step", name_of(program, op));
    }
    if (op.routed) {
      return fmt::format("{} depends on how tokens are routed", name_of(program, op));
    }
  }
  return "";
}

CudaGraph::CudaGraph(const CudaCalls& calls, const CudaStream& stream,
                     const std::function<void()>& issue)
    : calls_(calls) {
  const Graph graph = captured(calls, stream, issue);
  // Collectives keep the priority of the streams that they were captured from: without the flag all
  // of a graph runs at that of the stream which it is launched into.
  calls.check(cudaGraphInstantiate(&exec_, graph.get(), cudaGraphInstantiateFlagUseNodePriority),
              "cudaGraphInstantiate");
}

CudaGraph::~CudaGraph() { static_cast<void>(cudaGraphExecDestroy(exec_)); }

void CudaGraph::launch(const CudaStream& stream) const {
  calls_.check(cudaGraphLaunch(exec_, stream.handle()), "cudaGraphLaunch");
}

}  // namespace shardwise::exec
