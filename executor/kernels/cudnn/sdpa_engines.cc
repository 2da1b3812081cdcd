#include "executor/kernels/cudnn/sdpa_engines.h"

#include <algorithm>
#include <utility>

namespace shardwise::exec {
namespace {

/// The engine of a configuration, with what it says of itself.
SdpaEngine engine_of(const CudnnLibrary& library, CudnnDescriptor configuration) {
  const CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine");
  cudnnBackendDescriptor_t handle = engine.handle();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    static_cast<void*>(&handle));
  const std::int64_t bytes = configuration.number(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
  return {std::move(configuration), engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), bytes};
}

}  // namespace

SdpaEngines::SdpaEngines(const CudnnLibrary& library, const SdpaWork& work,
                         const SdpaTarget& target)
    : work_(work) {
  if (!target.properties.empty()) {
    CudnnDescriptor& properties =
        properties_.emplace_back(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a GPU");
    properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   static_cast<std::int64_t>(target.properties.size()), target.properties.data());
    properties.finalize();
  }
  const auto unless_refused = [&](auto call) {
    try {
      call();
    } catch (const CudnnError& error) {
      if (!error.is_refusal()) throw;
      refusal_ = error.what();
    }
  };
  unless_refused([&] { graph_.emplace_back(library, work, target.handle); });
  if (graph_.empty()) return;
  // The GPU may refuse the best when it is made ready, so that the others are known as well.
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    unless_refused([&] { ask(library, target, mode); });
  }
  if (!engines_.empty()) {
    refusal_.clear();
  } else if (refusal_.empty()) {
    refusal_ = "cuDNN has no engine for it";
  }
}

void SdpaEngines::ask(const CudnnLibrary& library, const SdpaTarget& target,
                      cudnnBackendHeurMode_t mode) {
  constexpr std::int64_t kMost = 16;
  CudnnDescriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.front().handle());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!target.properties.empty()) {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties_.front().handle());
  }
  heuristics.finalize();
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < kMost; ++i) {
    handles.push_back(
        found.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration")
            .handle());
  }
  const std::int64_t count =
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost,
                     static_cast<void*>(handles.data()));
  for (std::int64_t i = 0; i < std::min(count, kMost); ++i) {
    engines_.push_back(engine_of(library, std::move(found[static_cast<std::size_t>(i)])));
  }
}

}  // namespace shardwise::exec
