#pragma once

#include <optional>
#include <string>

#include "planner/export/framework/framework.h"

namespace shardwise {

/// A value as a file or a command line has it, written in one way: "5e8" as an integer is
/// "500000000", "True" as a boolean is "true". \returns nothing where it is not of that kind
std::optional<std::string> canonical(SettingKind kind, const std::string& text);

/// "an integer", for messages.
const char* noun_of(SettingKind kind);

/// The framework's word for the plan's, or the other way; nothing where it has none. Without a list
/// of words both have the same.
std::optional<std::string> theirs(const SettingSpec& spec, const std::string& ours);
std::optional<std::string> ours(const SettingSpec& spec, const std::string& theirs);

/// Whether a word has a variable that nobody knows.
bool names_variable(const std::string& word);

}  // namespace shardwise
