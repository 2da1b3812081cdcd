#pragma once

#include <string_view>

namespace shardwise {

// Texts of configs/engines, built in so that an estimate reads no file.
std::string_view runtime_config();
std::string_view allocator_config();
std::string_view timing_config();
std::string_view held_to_config();
std::string_view refusals_config();

}  // namespace shardwise
