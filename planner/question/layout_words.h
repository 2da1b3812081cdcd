#pragma once

#include <string>

#include "planner/question/field_values.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Settings of a layout that most do not have, besides degrees and ZeRO stage: "full recompute,
/// ulysses, optimizer on host".
std::string other_settings(const Layout& layout);

/// The fields in which two layouts differ, with their values in `to`.
FieldValues differing_fields(const Layout& from, const Layout& to);

/// "tp 4, cp 2, dp_shard 8".
std::string in_words(const FieldValues& values);

}  // namespace shardwise
