#pragma once

#include <optional>
#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A file that is no configuration of a framework.
Diagnostic not_one(const std::string& file, const std::string& is, const std::string& hint);

/// A file of a program that starts a framework itself, or trains by its own: its keys have names
/// that the frameworks have too, and mean something else.
std::optional<Diagnostic> of_other_program(const JsonValue& root, const std::string& file);

}  // namespace shardwise
