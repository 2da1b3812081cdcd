#pragma once

#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Everything that runs in a layer of each kind of the plan's model, in the order of the forward
/// pass.
std::vector<std::vector<LayerItem>> layer_items(const Plan& plan);

/// The stream of a collective inside a layer, by the ranks that meet.
Stream stream_of(GroupKind group);

/// Whether an operation of that part of a layer runs the item.
bool runs(const LayerItem& item, LayerPart part);

}  // namespace shardwise
