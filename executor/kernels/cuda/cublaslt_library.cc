#include "executor/kernels/cuda/cublaslt_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <system_error>
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

/// The first of the files that opens, and its path. \throws CublasLtError
std::pair<void*, std::string> open_first(const std::vector<std::string>& names,
                                         const std::vector<std::string>& folders) {
  std::vector<std::string> tried;
  for (const std::string& folder : folders) {
    tried.push_back(folder.empty() ? "the loader's search path" : folder);
  }
  for (const std::string& name : names) {
    for (const std::string& folder : folders) {
      const std::string path = folder.empty() ? name : fmt::format("{}/{}", folder, name);
      void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) return {library, path};
      // A file that is there and does not load says why.
      const char* const why = dlerror();
      std::error_code none;
      if (!folder.empty() && std::filesystem::exists(path, none)) tried.emplace_back(why);
    }
  }
  throw CublasLtError(fmt::format("no cuBLASLt ({}) on this machine; looked in {}",
                                  fmt::join(names, ", "), fmt::join(tried, ", ")));
}

std::string file_of(void* symbol, const std::string& opened) {
  Dl_info found{};
  return dladdr(symbol, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : opened;
}

}  // namespace

CublasLtError::CublasLtError(int rank, const char* call, cublasStatus_t status)
    : IoError(fmt::format("rank {}: {}: {} ({})", rank, call, status_name(status),
                          static_cast<int>(status))),
      status_(status) {}

std::vector<std::string> CublasLtLibrary::default_folders() {
  return NvidiaLibrary::default_folders("cublas");
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
  const auto [opened, path] = open_first(names(runtime), folders);
  void* const library = opened;
  std::vector<std::string> missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) missing.emplace_back(name);
  };
  CublasLtCalls calls;
  find(calls.get_version, "cublasLtGetVersion");
  find(calls.create, "cublasLtCreate");
  find(calls.destroy, "cublasLtDestroy");
  find(calls.product_create, "cublasLtMatmulDescCreate");
  find(calls.product_destroy, "cublasLtMatmulDescDestroy");
  find(calls.product_set, "cublasLtMatmulDescSetAttribute");
  find(calls.product_get, "cublasLtMatmulDescGetAttribute");
  find(calls.layout_create, "cublasLtMatrixLayoutCreate");
  find(calls.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(calls.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(calls.layout_get, "cublasLtMatrixLayoutGetAttribute");
  find(calls.preference_create, "cublasLtMatmulPreferenceCreate");
  find(calls.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(calls.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(calls.preference_get, "cublasLtMatmulPreferenceGetAttribute");
  find(calls.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(calls.algorithm_check, "cublasLtMatmulAlgoCheck");
  find(calls.algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute");
  find(calls.multiply, "cublasLtMatmul");
  if (!missing.empty()) {
    throw CublasLtError(fmt::format("cuBLASLt in {} lacks {}", path, fmt::join(missing, ", ")));
  }
  return {calls, file_of(reinterpret_cast<void*>(calls.get_version), path)};
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
