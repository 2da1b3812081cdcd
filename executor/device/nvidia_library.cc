#include "executor/device/nvidia_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace shardwise::exec {
namespace {

/// The folder that a variable of the environment names. Where it is empty or relative there is
/// none: it would be one of the current folder.
const char* folder_of(const char* variable) {
  const char* const folder = std::getenv(variable);
  return folder != nullptr && folder[0] == '/' ? folder : nullptr;
}

/// What pip puts of NVIDIA's into the Python environment at `root`: a folder for each package, or,
/// from CUDA 13 on, one for each toolkit. Conda has libraries in its own folder too.
void add_environment(const std::string& package, const char* root,
                     std::vector<std::string>& folders) {
  if (root == nullptr) return;
  const std::filesystem::path lib = std::filesystem::path(root) / "lib";
  std::error_code none;
  for (const auto& python : std::filesystem::directory_iterator(lib, none)) {
    const std::filesystem::path nvidia = python.path() / "site-packages" / "nvidia";
    for (const std::string& name : {package, std::string("cu13")}) {
      const std::filesystem::path folder = nvidia / name / "lib";
      if (std::filesystem::is_directory(folder, none)) folders.push_back(folder.string());
    }
  }
}

}  // namespace

std::vector<std::string> NvidiaLibrary::default_folders(const std::string& package) {
  std::vector<std::string> folders = {""};
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const home = folder_of(name);
    if (home == nullptr) continue;
    for (const char* const sub : {"/lib64", "/lib"}) folders.push_back(std::string(home) + sub);
  }
  folders.insert(folders.end(), {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"});
  add_environment(package, folder_of("VIRTUAL_ENV"), folders);
  const char* const conda = folder_of("CONDA_PREFIX");
  if (conda != nullptr) folders.push_back(std::string(conda) + "/lib");
  add_environment(package, conda, folders);
  return folders;
}

NvidiaLibrary::NvidiaLibrary(std::string name, const std::vector<std::string>& folders)
    : name_(std::move(name)) {
  std::vector<std::string> tried;
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? name_ : folder + "/" + name_;
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    // Of a file that is not there, the folder says enough.
    const char* const why = dlerror();
    std::error_code none;
    if (folder.empty()) {
      tried.emplace_back("the loader's search path");
    } else if (std::filesystem::exists(path, none)) {
      tried.emplace_back(why);
    } else {
      tried.push_back(folder);
    }
  }
  throw IoError(fmt::format("no {} on this machine; looked in {}", name_, fmt::join(tried, ", ")));
}

void* NvidiaLibrary::address_of(const char* symbol) {
  void* const address = dlsym(library_, symbol);
  if (address == nullptr) {
    missing_.emplace_back(symbol);
  } else {
    found_ = address;
  }
  return address;
}

std::string NvidiaLibrary::file() const {
  Dl_info found{};
  if (found_ == nullptr || dladdr(found_, &found) == 0 || found.dli_fname == nullptr) return name_;
  return found.dli_fname;
}

}  // namespace shardwise::exec
