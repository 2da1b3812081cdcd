#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

// Problems of a question name flags. A form calls problems_in_form(), which names fields instead.

/// "dp_shard" is "--dp-shard".
std::string flag_of(std::string_view field);

/// The flags of the fields that have a text.
std::vector<std::string> flags_of(const std::map<std::string, std::string>& texts);

/// A word of a command line as a shell reads it back.
std::string shell_word(const std::string& word);

/// Something wrong with what a flag was given.
Diagnostic wrong_flag(std::string flag, std::string message, std::string hint = {});

}  // namespace shardwise
