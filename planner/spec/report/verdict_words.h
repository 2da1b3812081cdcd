#pragma once

#include <string>

#include "planner/spec/report/report.h"
#include "planner/spec/text/table.h"

namespace shardwise {

Tone tone_of(Fit fit);

/// One sentence: does it fit, how full is the fullest GPU, how long is a step.
std::string verdict_words(const StepReport& report);

}  // namespace shardwise
