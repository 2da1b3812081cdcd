#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Whether the last part of a path may be a symbolic link.
enum class SymbolicLinks : std::uint8_t { followed, refused };

/// Opens a regular file for reading. A folder, pipe, device or socket of that name is refused at
/// once: none of them is opened, so none is waited for.
/// \param error  takes the system's number of what keeps a file that is there from being opened
/// \returns the descriptor, which the caller closes, or why there is none
Result<int> open_regular_file(const std::filesystem::path& path,
                              SymbolicLinks links = SymbolicLinks::followed, int* error = nullptr);

/// Reads one whole, up to 100 MB. \returns the text, or why there is none
/// \throws IoError where the disk cannot be read
Result<std::string> read_regular_file(const std::filesystem::path& path,
                                      SymbolicLinks links = SymbolicLinks::followed);
/// All of an open file, which it closes. A pipe or a device states no size, so none is asked for.
Result<std::string> read_open_file(int file, const std::string& name);

}  // namespace shardwise
