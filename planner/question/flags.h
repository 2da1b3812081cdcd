#pragma once

#include <string>
#include <string_view>

#include "planner/spec/diagnostic.h"

namespace shardwise {

// Problems of a question name flags, whoever asks it; problems_in_form() names fields instead.

/// "dp_shard" is "--dp-shard".
std::string flag_of(std::string_view field);

/// Something wrong with what a flag was given.
Diagnostic wrong_flag(std::string flag, std::string message, std::string hint = {});

}  // namespace shardwise
