#pragma once

#include <string>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// A library of NVIDIA's as it is on this machine: opened at run time, so that programs start
/// without it. It stays open until the process ends, as its threads may.
class NvidiaLibrary {
 public:
  /// Names that a library has.
  struct Name {
    std::vector<std::string> files;  // "libcudnn.so.9", the best first
    std::string package;             // the folder of its wheel: "cudnn"
    std::string wheel;               // what pip installs it by: "nvidia-cudnn-cu13"
  };

  /// In the place of a folder: what python_folders() has of wheels, asked when it is reached.
  static constexpr const char* kPython = "python3";

  /// Where `package` may be: below the folder of look_first_in(), the loader's search path (an
  /// empty folder), the CUDA toolkit's folders, those of NVIDIA's packages in the active Python or
  /// conda environment, kPython.
  static std::vector<std::string> default_folders(const std::string& package);
  /// Takes the value of --libraries: an environment or a folder, as folders_of_wheels() does. For
  /// libraries that this process opens from now on. \param folder  absolute, or empty for none
  static void look_first_in(const std::string& folder);

  /// Opens the first of the files that a folder has. Below the folder of look_first_in() and of
  /// python3, and in any folder as root, only files are opened that are trusted (TrustedFile).
  /// \throws IoError that says how to get it and names the folders, and why a file that is there
  /// is not trusted or does not load
  NvidiaLibrary(Name name, const std::vector<std::string>& folders);

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
  struct Tried;

  void* address_of(const char* symbol);
  bool open_in(const std::string& folder, const std::string& file, bool trusted, Tried& tried);
  bool open_below(const std::vector<std::string>& folders, const std::string& file, Tried& tried);

  Name name_;
  void* library_ = nullptr;
  void* found_ = nullptr;  // any symbol
  std::vector<std::string> missing_;
};

}  // namespace shardwise::exec
