#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/spec/diagnostic.h"

namespace shardwise::view {

/// What the viewer opens.
enum class FileKind : std::uint8_t {
  plan,  // or a page of `shardwise report`, which has one in it
  report,
  trace,
  metrics,
  model,
  cluster,
};

/// Tells a file by what is in it, whatever its name. \returns the kind, or why it is none
Result<FileKind> kind_of_file(const std::string& path);

/// The same of a text that is no trace by is_trace(). \param file  the name put into diagnostics
Result<FileKind> kind_of_text(std::string_view text, const std::string& file);

/// The first of them as one line, and how many more there are: "run.json:3: /step_time_s: -1 is
/// less than 0 (hint)".
std::string one_line(const Diagnostics& problems);

}  // namespace shardwise::view
