#pragma once

#include "simulator/clock/noise.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Flags of noise and failures, which all need --trials. \pre the verb has --import
void add_noise_flags(CLI::App& verb, sim::NoiseRules& noise);

/// Whether a trial's step differs from the undisturbed one. Failures that stop the job do not
/// count: they change goodput, not a step.
bool disturbs_steps(const sim::NoiseRules& noise);

}  // namespace shardwise::cli
