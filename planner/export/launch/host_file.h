#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A node, and how many processes it takes.
struct Host {
  std::string name;
  std::int64_t slots = 0;
};

/// The nodes that a launcher may use: lines of "NAME slots=N".
struct HostFile {
  std::string file;
  std::vector<Host> hosts;
};

/// Whether the first line that says something has a host and its slots.
bool is_host_file(std::string_view text);

/// Fails where a line is no host, and where a host stands there twice, as DeepSpeed does.
/// Source: deepspeed/launcher/runner.py, _parse_hostfile.
Result<HostFile> read_host_file(std::string_view text, const std::string& file);

}  // namespace shardwise
