#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// A library of NVIDIA's as it is on this machine: opened at run time, so that programs start
/// without it. It stays open until the process ends, as its threads may.
class NvidiaLibrary {
 public:
  /// Where `package` ("cudnn", "nccl") may be: the loader's search path (an empty folder), the CUDA
  /// toolkit's folders, those of NVIDIA's packages in the active Python or conda environment.
  static std::vector<std::string> default_folders(const std::string& package);

  /// Opens the first file `name` ("libcudnn.so.9") of the folders.
  /// \throws IoError that names the folders, and why a file that is there does not load
  NvidiaLibrary(std::string name, const std::vector<std::string>& folders);

  /// Sets `function` to the symbol, null where the library lacks it.
  template <class Function>
  void find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(address_of(symbol));
  }
  /// Symbols that were looked for and are not there.
  const std::vector<std::string>& missing() const { return missing_; }
  /// The file it was opened from.
  std::string file() const;

 private:
  void* address_of(const char* symbol);

  std::string name_;
  void* library_ = nullptr;
  void* found_ = nullptr;  // any symbol
  std::vector<std::string> missing_;
};

}  // namespace shardwise::exec
