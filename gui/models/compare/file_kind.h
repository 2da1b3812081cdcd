#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::view {

/// Kinds of files that the viewer opens.
enum class FileKind : std::uint8_t {
  plan,  // or a page of `shardwise report`, which has one in it
  report,
  trace,
  metrics,
  model,
  cluster,
};

/// Tells a file by what is in it, whatever its name. \returns the kind, or why it is none
/// \throws IoError  where it is there and cannot be read
Result<FileKind> kind_of_file(const std::string& path);

/// Kind of a text that is no trace by is_trace(). \param file the name put into diagnostics
Result<FileKind> kind_of_text(std::string_view text, const std::string& file);

}  // namespace shardwise::view
