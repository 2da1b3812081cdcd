#include "executor/kernels/cudnn/cudnn_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "executor/device/nvidia_library.h"

namespace shardwise::exec {
namespace {

const NvidiaLibrary::Name kName = {{"libcudnn.so.9"}, "cudnn", "nvidia-cudnn-cu13"};

std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::vector<std::string> CudnnLibrary::default_folders() {
  return NvidiaLibrary::default_folders(kName.package);
}

CudnnLibrary CudnnLibrary::open(const std::vector<std::string>& folders) {
  NvidiaLibrary library(kName, folders);
  CudnnCalls calls;
  library.find(calls.get_version, "cudnnGetVersion");
  library.find(calls.get_error_string, "cudnnGetErrorString");
  library.find(calls.get_last_error, "cudnnGetLastErrorString");
  library.find(calls.create_handle, "cudnnCreate");
  library.find(calls.destroy_handle, "cudnnDestroy");
  library.find(calls.set_stream, "cudnnSetStream");
  library.find(calls.create, "cudnnBackendCreateDescriptor");
  library.find(calls.destroy, "cudnnBackendDestroyDescriptor");
  library.find(calls.set, "cudnnBackendSetAttribute");
  library.find(calls.get, "cudnnBackendGetAttribute");
  library.find(calls.finalize, "cudnnBackendFinalize");
  library.find(calls.execute, "cudnnBackendExecute");
  if (!library.missing().empty()) {
    throw IoError(fmt::format("{} lacks {}; cuDNN {} or later is needed", library.file(),
                              fmt::join(library.missing(), ", "), version_text(kOldestCudnn)));
  }
  return {calls, library.file()};
}

CudnnLibrary::CudnnLibrary(const CudnnCalls& calls, std::string where)
    : calls_(calls), where_(std::move(where)), version_(calls_.get_version()) {
  if (version_ < kOldestCudnn) {
    throw IoError(fmt::format("cuDNN {} ({}) is too old; {} or later is needed",
                              version_text(version_), where_, version_text(kOldestCudnn)));
  }
}

std::string CudnnLibrary::describe() const {
  return fmt::format("cuDNN {} ({})", version_text(version_), where_);
}

void CudnnLibrary::check(cudnnStatus_t status, const std::string& call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  constexpr std::size_t kLongest = 400;
  std::array<char, 4096> words{};
  calls_.get_last_error(words.data(), words.size());
  std::string why = words.data();
  std::replace_if(
      why.begin(), why.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  why = why.substr(0, std::min(kLongest, why.find_last_not_of(' ') + 1));
  throw CudnnError(fmt::format("{}: {} ({}){}{}", call, calls_.get_error_string(status),
                               static_cast<int>(status), why.empty() ? "" : ": ", why),
                   status);
}

}  // namespace shardwise::exec
