#include "executor/kernels/cuda/cublaslt_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "executor/device/nvidia_library.h"

namespace shardwise::exec {
namespace {

/// Versions whose interface this knows.
constexpr std::array<int, 2> kMajors = {13, 12};

/// The names of cublas_api.h, so that a failure is named where the library itself does not load.
const char* status_name(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown status";
}

constexpr const char* kPackage = "cublas";

/// \throws CublasLtError
NvidiaLibrary open_first(const std::vector<std::string>& files,
                         const std::vector<std::string>& folders, int major) {
  const std::string wheel =
      major < 13 ? fmt::format("nvidia-cublas-cu{}", major) : std::string("nvidia-cublas");
  try {
    return {{files, kPackage, wheel}, folders};
  } catch (const IoError& missing) {
    throw CublasLtError(missing.what());
  }
}

}  // namespace

CublasLtError::CublasLtError(int rank, const char* call, cublasStatus_t status)
    : IoError(fmt::format("rank {}: {}: {} ({})", rank, call, status_name(status),
                          static_cast<int>(status))),
      status_(status) {}

std::vector<std::string> CublasLtLibrary::default_folders() {
  return NvidiaLibrary::default_folders(kPackage);
}

std::vector<std::string> CublasLtLibrary::names(int runtime) {
  std::array<int, 2> majors = kMajors;
  std::ranges::stable_sort(majors, std::greater(),
                           [&](int major) { return major == runtime / 1000; });
  std::vector<std::string> names;
  for (const int major : majors) names.push_back(fmt::format("libcublasLt.so.{}", major));
  return names;
}

CublasLtLibrary CublasLtLibrary::open(const std::vector<std::string>& folders, int runtime) {
  NvidiaLibrary library = open_first(names(runtime), folders, runtime / 1000);
  CublasLtCalls calls;
  library.find(calls.get_version, "cublasLtGetVersion");
  library.find(calls.create, "cublasLtCreate");
  library.find(calls.destroy, "cublasLtDestroy");
  library.find(calls.product_create, "cublasLtMatmulDescCreate");
  library.find(calls.product_destroy, "cublasLtMatmulDescDestroy");
  library.find(calls.product_set, "cublasLtMatmulDescSetAttribute");
  library.find(calls.product_get, "cublasLtMatmulDescGetAttribute");
  library.find(calls.layout_create, "cublasLtMatrixLayoutCreate");
  library.find(calls.layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.find(calls.layout_set, "cublasLtMatrixLayoutSetAttribute");
  library.find(calls.layout_get, "cublasLtMatrixLayoutGetAttribute");
  library.find(calls.preference_create, "cublasLtMatmulPreferenceCreate");
  library.find(calls.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.find(calls.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.find(calls.preference_get, "cublasLtMatmulPreferenceGetAttribute");
  library.find(calls.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(calls.algorithm_check, "cublasLtMatmulAlgoCheck");
  library.find(calls.algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute");
  library.find(calls.multiply, "cublasLtMatmul");
  if (!library.missing().empty()) {
    throw CublasLtError(
        fmt::format("cuBLASLt in {} lacks {}", library.file(), fmt::join(library.missing(), ", ")));
  }
  return {calls, library.file()};
}

CublasLtLibrary::CublasLtLibrary(const CublasLtCalls& calls, std::string where)
    : calls_(calls),
      where_(std::move(where)),
      version_(static_cast<std::int64_t>(calls_.get_version())) {}

std::string CublasLtLibrary::describe() const {
  return fmt::format("cuBLASLt {}.{}.{} ({})", version_ / 10000, version_ / 100 % 100,
                     version_ % 100, where_);
}

}  // namespace shardwise::exec
