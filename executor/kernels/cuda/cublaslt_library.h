#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// A call of cuBLASLt that failed: "rank 0: cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)".
class CublasLtError : public IoError {
 public:
  explicit CublasLtError(const std::string& text) : IoError(text) {}
  CublasLtError(int rank, const char* call, cublasStatus_t status);
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

/// The functions of cuBLASLt that are called, each under its own prototype.
struct CublasLtCalls {
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) product_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) product_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) product_set = nullptr;
  decltype(&cublasLtMatmulDescGetAttribute) product_get = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatrixLayoutGetAttribute) layout_get = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulPreferenceGetAttribute) preference_get = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) algorithm_check = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

/// cuBLASLt as it is on this machine: not linked, since opening it takes 0.1 s.
class CublasLtLibrary {
 public:
  /// Opens the first of names(runtime) that a folder has; an empty one is the loader's own search.
  /// It stays open until the process ends.
  /// \param runtime  version of CUDA's runtime: a library of a later one needs a later driver
  /// \throws CublasLtError that names the folders, or the file and what it lacks
  static CublasLtLibrary open(const std::vector<std::string>& folders = default_folders(),
                              int runtime = CUDART_VERSION);
  /// Files of the versions that are known, that of the runtime's major version first.
  static std::vector<std::string> names(int runtime);
  /// Those of NvidiaLibrary.
  static std::vector<std::string> default_folders();

  CublasLtLibrary(const CublasLtCalls& calls, std::string where);

  const CublasLtCalls& calls() const { return calls_; }
  /// 10000 * major + 100 * minor + patch, in whichever way the library counts.
  std::int64_t version() const { return version_; }
  /// "cuBLASLt 13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)".
  std::string describe() const;

 private:
  CublasLtCalls calls_;
  std::string where_;
  std::int64_t version_ = 0;
};

}  // namespace shardwise::exec
