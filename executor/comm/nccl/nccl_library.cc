#include "executor/comm/nccl/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace shardwise::exec {
namespace {

constexpr const char* kName = "libnccl.so.2";
// The first with ncclCommSplit and ncclConfig_t::splitShare. Source: NCCL's release notes, 2.18.1.
constexpr int kOldest = NCCL_VERSION(2, 18, 1);

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// The file that a symbol is in.
std::string file_of(void* symbol) {
  Dl_info found{};
  return dladdr(symbol, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : kName;
}

/// Site-packages of the Python environment that is active: pip puts NVIDIA's libraries there.
void add_python_folders(std::vector<std::string>& folders) {
  const char* const environment = std::getenv("VIRTUAL_ENV");
  if (environment == nullptr) return;
  std::error_code none;
  const std::filesystem::path lib = std::filesystem::path(environment) / "lib";
  for (const auto& python : std::filesystem::directory_iterator(lib, none)) {
    const std::filesystem::path nccl = python.path() / "site-packages" / "nvidia" / "nccl" / "lib";
    if (std::filesystem::is_directory(nccl, none)) folders.push_back(nccl.string());
  }
}

/// The symbols of an open library.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) missing_.emplace_back(name);
  }
  template <class Function>
  void find_optional(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void* library_;
  std::vector<std::string> missing_;
};

}  // namespace

std::vector<std::string> NcclLibrary::default_folders() {
  std::vector<std::string> folders = {""};
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const home = std::getenv(name);
    if (home == nullptr) continue;
    for (const char* const sub : {"/lib64", "/lib"}) folders.push_back(std::string(home) + sub);
  }
  folders.insert(folders.end(), {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"});
  add_python_folders(folders);
  return folders;
}

NcclLibrary NcclLibrary::open(const std::vector<std::string>& folders) {
  void* library = nullptr;
  std::vector<std::string> tried;
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? kName : folder + "/" + kName;
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    // A file that is there and does not load says why; of the others it is enough where they are
    // not.
    const char* const why = dlerror();
    const bool there = !folder.empty() && std::filesystem::exists(path);
    tried.push_back(there            ? std::string(why)
                    : folder.empty() ? "the loader's search path"
                                     : folder);
  }
  if (library == nullptr) {
    throw NcclError(
        fmt::format("no NCCL ({}) on this machine; looked in {}", kName, fmt::join(tried, ", ")));
  }
  NcclCalls calls;
  Symbols symbols(library);
  symbols.find(calls.get_version, "ncclGetVersion");
  symbols.find(calls.get_unique_id, "ncclGetUniqueId");
  symbols.find(calls.get_error_string, "ncclGetErrorString");
  symbols.find(calls.get_last_error, "ncclGetLastError");
  symbols.find(calls.init_rank, "ncclCommInitRankConfig");
  symbols.find(calls.split, "ncclCommSplit");
  symbols.find(calls.finalize, "ncclCommFinalize");
  symbols.find(calls.destroy, "ncclCommDestroy");
  symbols.find(calls.abort, "ncclCommAbort");
  symbols.find(calls.get_async_error, "ncclCommGetAsyncError");
  symbols.find_optional(calls.register_buffer, "ncclCommRegister");
  symbols.find_optional(calls.deregister_buffer, "ncclCommDeregister");
  symbols.find(calls.all_gather, "ncclAllGather");
  symbols.find(calls.reduce_scatter, "ncclReduceScatter");
  symbols.find(calls.all_reduce, "ncclAllReduce");
  symbols.find(calls.send, "ncclSend");
  symbols.find(calls.receive, "ncclRecv");
  symbols.find(calls.group_start, "ncclGroupStart");
  symbols.find(calls.group_end, "ncclGroupEnd");
  symbols.find_optional(calls.register_window, "ncclCommWindowRegister");
  symbols.find_optional(calls.deregister_window, "ncclCommWindowDeregister");
  const std::string where =
      calls.get_version != nullptr ? file_of(reinterpret_cast<void*>(calls.get_version)) : kName;
  if (!symbols.missing().empty()) {
    int version = 0;
    if (calls.get_version != nullptr) calls.get_version(&version);
    throw NcclError(fmt::format("NCCL {} ({}) lacks {}; {} or later is needed",
                                version_text(version), where, fmt::join(symbols.missing(), ", "),
                                version_text(kOldest)));
  }
  return {calls, where};
}

NcclLibrary::NcclLibrary(const NcclCalls& calls, std::string where)
    : calls_(calls), where_(std::move(where)) {
  const ncclResult_t result = calls_.get_version(&version_);
  if (result != ncclSuccess) {
    throw NcclError(
        fmt::format("ncclGetVersion of {}: {}", where_, calls_.get_error_string(result)));
  }
  if (version_ < kOldest) {
    throw NcclError(fmt::format("NCCL {} ({}) is too old; {} or later is needed",
                                version_text(version_), where_, version_text(kOldest)));
  }
}

std::string NcclLibrary::describe() const {
  return fmt::format("NCCL {} ({})", version_text(version_), where_);
}

}  // namespace shardwise::exec
