#pragma once

namespace shardwise::cli {

/// Standard output is a terminal that shows colour, and NO_COLOR does not forbid it (no-color.org).
bool wants_colour();

}  // namespace shardwise::cli
