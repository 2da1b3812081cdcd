#pragma once

#include <string_view>

namespace shardwise {

/// Text of configs/intervals.json, built in so that an estimate reads no file.
std::string_view interval_config();

}  // namespace shardwise
