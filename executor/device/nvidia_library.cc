#include "executor/device/nvidia_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "executor/device/python_folders.h"
#include "planner/files/trusted_file.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

/// The folder that a variable of the environment names. Where it is empty or relative there is
/// none: it would be one of the current folder.
const char* folder_of(const char* variable) {
  const char* const folder = std::getenv(variable);
  return folder != nullptr && folder[0] == '/' ? folder : nullptr;
}

/// What look_first_in() was told last.
std::string& first_folder() {
  static std::string folder;
  return folder;
}

/// Of NVIDIA's packages in the Python or conda environment at `root`.
void add_environment(const std::string& package, const char* root,
                     std::vector<std::string>& folders) {
  if (root == nullptr) return;
  std::error_code none;
  for (const auto& python : fs::directory_iterator(fs::path(root) / "lib", none)) {
    add_wheels(python.path() / "site-packages" / "nvidia", package, folders);
  }
}

}  // namespace

/// Where it was looked for, and why a file that is there was not opened, each once.
struct NvidiaLibrary::Tried {
  std::vector<std::string> places;
  std::string refused;  // the first file that is there and not trusted

  void add(const std::string& place) {
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
};

std::vector<std::string> NvidiaLibrary::default_folders(const std::string& package) {
  std::vector<std::string> folders;
  if (!first_folder().empty()) folders.push_back(first_folder());
  folders.emplace_back();
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
  folders.emplace_back(kPython);
  return folders;
}

void NvidiaLibrary::look_first_in(const std::string& folder) { first_folder() = folder; }

NvidiaLibrary::NvidiaLibrary(Name name, const std::vector<std::string>& folders)
    : name_(std::move(name)) {
  Tried tried;
  for (const std::string& file : name_.files) {
    for (const std::string& folder : folders) {
      if (folder == kPython) {
        tried.add("what python3 imports");
        std::vector<std::string> wheels;
        for (const std::string& each : python_folders()) {
          add_wheels(fs::path(each) / "nvidia", name_.package, wheels);
        }
        if (open_below(wheels, file, tried)) return;
      } else if (!folder.empty() && folder == first_folder()) {
        tried.add(folder);
        if (open_below(folders_of_wheels(folder, name_.package), file, tried)) return;
      } else if (open_in(folder, file, false, tried)) {
        return;
      }
    }
  }
  if (!tried.refused.empty()) {
    throw IoError(fmt::format("{}; run as its owner, close it to others, or pip install {} as {}",
                              tried.refused, name_.wheel, user_name(::geteuid())));
  }
  throw IoError(fmt::format(
      "no {} on this machine (pip install {}, or name its folder by --libraries); looked in {}",
      fmt::join(name_.files, " or "), name_.wheel, fmt::join(tried.places, ", ")));
}

bool NvidiaLibrary::open_below(const std::vector<std::string>& folders, const std::string& file,
                               Tried& tried) {
  return std::ranges::any_of(
      folders, [&](const std::string& folder) { return open_in(folder, file, true, tried); });
}

bool NvidiaLibrary::open_in(const std::string& folder, const std::string& file, bool trusted,
                            Tried& tried) {
  const std::string path = folder.empty() ? file : folder + "/" + file;
  // Root may have the environment of another user, as after sudo -E.
  if (trusted || (!folder.empty() && ::geteuid() == 0)) {
    const TrustedFile own(folder, file);
    if (!own.exists()) {
      if (!trusted) tried.add(folder);
      return false;
    }
    if (!own.refusal().empty()) {
      if (tried.refused.empty()) tried.refused = own.refusal();
      return false;
    }
  }
  // By its name: what lies beside it is looked for there.
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ != nullptr) return true;
  // Of a file that is not there, the folder says enough.
  const char* const why = dlerror();
  std::error_code none;
  if (folder.empty()) {
    tried.add("the loader's search path");
  } else {
    tried.add(std::filesystem::exists(path, none) ? why : folder);
  }
  return false;
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
  if (found_ == nullptr || dladdr(found_, &found) == 0 || found.dli_fname == nullptr)
    return name_.files.front();
  return found.dli_fname;
}

}  // namespace shardwise::exec
