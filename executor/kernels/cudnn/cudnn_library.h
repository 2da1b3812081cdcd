#pragma once

#include <cudnn_graph.h>

#include <string>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// A call of cuDNN failed; says which, with the status and cuDNN's own words.
class CudnnError : public IoError {
 public:
  CudnnError(const std::string& text, cudnnStatus_t status) : IoError(text), status_(status) {}
  cudnnStatus_t status() const { return status_; }
  /// Whether cuDNN does not run the work, rather than that something broke.
  bool is_refusal() const {
    return CUDNN_STATUS_CATEGORY(static_cast<int>(status_)) == CUDNN_STATUS_NOT_SUPPORTED;
  }

 private:
  cudnnStatus_t status_;
};

/// The functions of cuDNN that are called, each under its own prototype.
struct CudnnCalls {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnGetLastErrorString) get_last_error = nullptr;
  decltype(&cudnnCreate) create_handle = nullptr;
  decltype(&cudnnDestroy) destroy_handle = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
};

/// The first cuDNN whose attention we use: before, the backward needs lengths given beside
/// sequences that 128 does not divide. Source: cudnn-frontend 1.23, CompositeSDPABackwardNode. Its
/// accumulator of the queries' gradients need not be zeroed since 9.6.
inline constexpr std::size_t kOldestCudnn = 91501;

/// cuDNN as it is on this machine: not linked, so that programs start without it.
class CudnnLibrary {
 public:
  /// \throws IoError that names where it was looked for, or the version and what it lacks
  static CudnnLibrary open(const std::vector<std::string>& folders = default_folders());
  static std::vector<std::string> default_folders();

  /// \throws IoError when it is too old  \param where  the file, for messages
  CudnnLibrary(const CudnnCalls& calls, std::string where);

  const CudnnCalls& calls() const { return calls_; }
  std::size_t version() const { return version_; }
  /// "cuDNN 9.19.0 (/usr/…/libcudnn.so.9)".
  std::string describe() const;
  /// \throws CudnnError unless `status`, of `call`, is success; in one line
  void check(cudnnStatus_t status, const std::string& call) const;

 private:
  CudnnCalls calls_;
  std::string where_;
  std::size_t version_ = 0;
};

}  // namespace shardwise::exec
