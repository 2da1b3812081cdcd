#pragma once

#include <string>

#include "gui/models/compare/compare_model.h"
#include "planner/question/correction.h"

namespace shardwise::view {

/// Why a calibrated step is not the measured one: the factor is of the step-time model's
/// prediction. Empty where the compared step is estimated, which has no other clock.
std::string remains_text(const CompareView& view, const Correction& correction);

}  // namespace shardwise::view
