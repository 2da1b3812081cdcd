#pragma once

#include "planner/search/search.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Whether the space of a request has a legal layout, or what is wrong with a lock or an opened
/// field.
Result<bool> any_legal(const SearchRequest& request);

}  // namespace shardwise
