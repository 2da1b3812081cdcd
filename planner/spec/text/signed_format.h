#pragma once

#include <string>

#include "planner/spec/text/units.h"

namespace shardwise {

/// Differences as people read them, always with a sign: "+12.3 ms", "-1.20 s", "+0 s".
std::string signed_seconds(Seconds time);
/// "+3.1 %", "+0.0 %".
std::string signed_percent(double share);
/// "-1.20 GiB", "+0 B".
std::string signed_bytes(Bytes bytes);
/// "-$16.10".
std::string signed_dollars(double dollars);

}  // namespace shardwise
