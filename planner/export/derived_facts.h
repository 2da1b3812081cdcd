#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/conditions.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The largest degree, batch or number of ranks that is counted with.
inline constexpr std::int64_t kMostFact = 1 << 30;

/// A fact as a number; nothing where it is not there, or is none.
std::optional<std::int64_t> fact_count(const Values& facts, const std::string& name);

/// A degree, from 1 to kMostFact. One that is not stated is 1.
std::int64_t degree(const Values& facts, const char* name);

/// Makes sgd_momentum of SGD with a share of the last step, which is a state of each parameter.
void add_momentum(Values& facts);

/// Adds the facts that follow from those that settings state: ranks, stages, the data-parallel
/// degree, batches and the state of SGD.
/// \param problems  takes batches that are no multiple of each other, and stages that no plan has
void derive_facts(const Framework& framework, const Settings& settings, Values& facts,
                  Diagnostics& problems);

}  // namespace shardwise
