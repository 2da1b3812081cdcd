#pragma once

#include <string>

namespace shardwise::cli {

/// Writes the whole text or nothing: into a file beside `path`, which then takes its name. What
/// was at `path` stays as it is when the disk is full. A device or a pipe is written as it is.
/// \throws IoError  with the path and the reason
void write_file(const std::string& path, const std::string& text);

}  // namespace shardwise::cli
