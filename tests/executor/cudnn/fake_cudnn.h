#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "executor/kernels/cudnn/cudnn_library.h"

namespace shardwise::exec {

/// cuDNN's functions with nothing behind them: objects keep what they were told, some engines take
/// every graph, a chosen call fails. One exists at a time.
class FakeCudnn {
 public:
  struct Object {
    cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
    std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> attributes;
    bool finalized = false;

    template <class T>
    std::vector<T> values(cudnnBackendAttributeName_t attribute) const {
      const std::vector<std::byte>& bytes = attributes.at(attribute);
      const auto* const first = reinterpret_cast<const T*>(bytes.data());
      return std::vector<T>(first, first + bytes.size() / sizeof(T));
    }
  };
  static constexpr std::int64_t kEngine = 3;
  static constexpr std::int64_t kEngineBytes = 1000;

  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  static CudnnCalls calls();

  /// The n-th call that can fail, from 0, fails with `status`; no other does.
  void fail(std::int64_t n, cudnnStatus_t status);
  std::int64_t called = 0;
  std::int64_t created = 0;
  std::int64_t destroyed = 0;
  std::map<cudnnBackendDescriptor_t, Object> objects;  // that are not destroyed
  std::size_t version = 91900;
  /// Places of the last execution.
  std::map<std::int64_t, void*> places;
  std::map<std::int64_t, float> numbers;  // read where the place is in the host's memory
  void* workspace = nullptr;
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;  // that was set last
  /// Called by each execution, after the above are set.
  std::function<void(const FakeCudnn&)> on_execution;
  std::int64_t engine_bytes = kEngineBytes;
  std::int64_t engines = 1;  // that heuristics A have
  std::int64_t fallback_engines = 0;
  std::int64_t refused_plans = 0;  // whose finalisation the GPU refuses, from the next on
  std::int64_t plans = 0;          // that it did not refuse

 private:
  struct Functions;
  std::optional<cudnnStatus_t> next();
  std::int64_t failing_ = -1;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

}  // namespace shardwise::exec
