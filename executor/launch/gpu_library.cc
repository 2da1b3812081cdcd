#include "executor/launch/gpu_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

GpuPluginEntry& linked_entry() {
  static GpuPluginEntry entry = nullptr;
  return entry;
}

std::vector<std::string> default_folders() {
  std::error_code none;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", none);
  if (none) return {};
  const std::filesystem::path folder = own.parent_path();
  return {folder.string(), (folder.parent_path() / "lib").string()};
}

/// \throws IoError when the library is of another build
void check_build(const GpuPlugin& plugin, const std::string& where) {
  if (plugin.abi == SHARDWISE_GPU_PLUGIN_ABI &&
      std::string_view(plugin.version) == SHARDWISE_VERSION) {
    return;
  }
  throw IoError(fmt::format(
      "{} is of Shardwise {}, ABI {}, and this shardwise-run of {}, ABI {}: install both of one "
      "build",
      where, plugin.version, plugin.abi, SHARDWISE_VERSION, SHARDWISE_GPU_PLUGIN_ABI));
}

/// Whether a library lacks its end, as a copy that was broken off: the loader would not say so, but
/// die. Its table of sections is the last of it.
bool is_cut(const TrustedFile& file) {
  Elf64_Ehdr header{};
  std::ifstream bytes(file.opened(), std::ios::binary);
  if (!bytes.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file.opened(), none);
  return header.e_shoff + std::uint64_t{header.e_shentsize} * header.e_shnum > size;
}

void* loaded(TrustedFile& file, int when) {
  const std::string opened = file.opened();
  void* const library = ::dlopen(opened.c_str(), when | RTLD_LOCAL);
  if (library != nullptr) {
    file.keep_open();
    return library;
  }
  std::string why = ::dlerror();
  if (why.starts_with(opened)) why.replace(0, opened.size(), file.path());
  throw IoError(fmt::format("cannot open {}: {}", file.path(), why));
}

}  // namespace

void use_gpu_library(GpuPluginEntry entry) { linked_entry() = entry; }

GpuLibrary open_gpu_library() {
  if (linked_entry() != nullptr) return {linked_entry()()->open(), {}};
  return open_gpu_library(default_folders());
}

GpuLibrary open_gpu_library(const std::vector<std::string>& folders) {
  std::string refused;
  for (const std::string& folder : folders) {
    TrustedFile file(folder, kGpuPluginFile);
    if (!file.exists()) continue;
    if (!file.refusal().empty()) {
      if (refused.empty()) refused = file.refusal();
      continue;
    }
    if (is_cut(file)) throw IoError(fmt::format("cannot open {}: it lacks its end", file.path()));
    // Its functions are bound once it is known to be of this build.
    void* const library = loaded(file, RTLD_LAZY);
    const auto entry = reinterpret_cast<GpuPluginEntry>(::dlsym(library, kGpuPluginEntry));
    if (entry == nullptr) throw IoError(fmt::format("{} has no {}", file.path(), kGpuPluginEntry));
    check_build(*entry(), file.path());
    static_cast<void>(loaded(file, RTLD_NOW));
    return {entry()->open(), {}};
  }
  if (!refused.empty()) return {nullptr, refused, true};
#ifdef SHARDWISE_NO_GPUS
  return {nullptr, "this shardwise-run was built without code for GPUs: " SHARDWISE_NO_GPUS};
#else
  return {nullptr,
          fmt::format("there is no {} (looked in {})", kGpuPluginFile, fmt::join(folders, ", "))};
#endif
}

}  // namespace shardwise::exec
