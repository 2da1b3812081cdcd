#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise::exec {

/// Adds the folders in which pip puts libraries of `package` ("cudnn", "nccl") below the folder
/// `nvidia` of an environment: one for each package, or, from CUDA 13 on, one for each toolkit.
void add_wheels(const std::filesystem::path& nvidia, const std::string& package,
                std::vector<std::string>& folders);

/// Folders in which pip puts `package` below `root`: an environment, its folder of packages, the
/// folder nvidia there, or a folder of libraries itself. Those that are there, in the order in
/// which they are searched.
std::vector<std::string> folders_of_wheels(const std::string& root, const std::string& package);

/// Where the first python3 of `path`, a list as in PATH, imports packages from: absolute folders
/// alone. -I keeps variables and the current folder out of it. Empty where there is none in an
/// absolute folder, where it is not trusted (TrustedFile), or where it does not answer within 5 s.
std::vector<std::string> folders_of_python(std::string_view path);
/// Folders of this process's PATH, asked once.
const std::vector<std::string>& python_folders();

}  // namespace shardwise::exec
