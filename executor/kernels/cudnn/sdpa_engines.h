#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/kernels/cudnn/sdpa_graph.h"

namespace shardwise::exec {

/// The GPU that engines are asked for: one that is here, by its handle, or one described by its
/// properties, in JSON as cuDNN writes them.
struct SdpaTarget {
  cudnnHandle_t handle = nullptr;
  std::string properties;
};

/// One way of cuDNN's to run a graph.
struct SdpaEngine {
  CudnnDescriptor configuration;
  std::int64_t index = 0;  // of the engine: a program of cuDNN's for this kind of graph
  std::int64_t workspace_bytes = 0;
};

/// Engines of cuDNN's for one work on one GPU, best first by its own heuristics, behind them those
/// that it falls back to; none where it refuses the work, with the reason.
class SdpaEngines {
 public:
  /// \throws CudnnError when a call fails that should not: a refusal is no failure
  SdpaEngines(const CudnnLibrary& library, const SdpaWork& work, const SdpaTarget& target);

  const SdpaWork& work() const { return work_; }
  const std::vector<SdpaEngine>& engines() const { return engines_; }
  const std::string& refusal() const { return refusal_; }

 private:
  void ask(const CudnnLibrary& library, const SdpaTarget& target, cudnnBackendHeurMode_t mode);

  SdpaWork work_;
  std::vector<CudnnDescriptor> properties_;
  std::vector<SdpaGraph> graph_;  // none when cuDNN refuses it
  std::vector<SdpaEngine> engines_;
  std::string refusal_;
};

}  // namespace shardwise::exec
