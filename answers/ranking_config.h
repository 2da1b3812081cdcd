#pragma once

#include <string_view>

namespace shardwise::sim {

// Text of configs/ranking.json, built in so that a ranking reads no file.
std::string_view ranking_config();

}  // namespace shardwise::sim
