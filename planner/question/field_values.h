#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Fields of a Layout with their values, as given.
using FieldValues = std::vector<std::pair<std::string, std::string>>;

/// A value of a field as a layout has it, of one that a user typed: in a layout a bucket of 0
/// elements is the engine's own, to Megatron it is one for each tensor, as a bucket of 1 is.
std::string typed_value(const std::string& field, const std::string& text);

/// "tp=4,pp=2" as pairs, each a typed_value(). \param flag  where a problem is said to be
Result<FieldValues> read_values(const std::string& text, const std::string& flag);

}  // namespace shardwise
