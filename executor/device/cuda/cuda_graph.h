#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "executor/device/cuda/cuda_stream.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Why a program's step cannot be one graph; empty when it can.
std::string capture_problem(const StageProgram& program);

/// A step captured once, launched again and again. What kernels were given by value stays what it
/// was; what they read from memory is read at each launch.
class CudaGraph {
 public:
  /// Captures what `issue` issues, beginning with `stream`; other streams that join in join it back
  /// before the end. Nothing of it runs. \throws CudaError, and what `issue` throws
  CudaGraph(const CudaCalls& calls, const CudaStream& stream, const std::function<void()>& issue);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch(const CudaStream& stream) const;

 private:
  CudaCalls calls_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace shardwise::exec
