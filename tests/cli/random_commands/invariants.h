#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace shardwise::cli {

/// Violations in something a command printed: one sentence each, with the values.
using Violations = std::vector<std::string>;

/// Violations of any command: exit code 0 to 2 (nothing here breaks the world), a refusal of few
/// readable lines on standard error and nothing on standard output, no sign of a crash.
Violations outcome_violations(const Outcome& outcome);

/// Violations of a report of `estimate --json` or `simulate --json`: numbers are finite and not
/// negative, parts add up (times to 1e-9, bytes exactly), the verdict follows from the bytes, MFU
/// <= HFU <= 1, no link carries more than its bandwidth allows.
Violations report_violations(const nlohmann::json& report);

/// Violations of both for one layout: the same ledger, the same step by the step-time model, and
/// without contention the same step on the clock: to 1 % layer by layer, to 5 % kernel by kernel,
/// where the overlap of transfers is not told apart (docs/step_program.md).
Violations simulation_violations(const nlohmann::json& estimated, const nlohmann::json& simulated,
                                 bool by_kernel);

/// Violations of two reports that differ in the ZeRO stage alone, the higher second: no stage has
/// more bytes of weights, gradients and optimizer state. Padding of shards may add 1 % and 1 MiB.
Violations sharding_violations(const nlohmann::json& lower, const nlohmann::json& higher);

/// Violations of two reports that differ in the global batch alone: the larger has no shorter step.
Violations batch_violations(const nlohmann::json& smaller, const nlohmann::json& larger);

/// Violations of a search whose layout was locked in every field: what it ranked is `estimated`.
Violations search_violations(const nlohmann::json& estimated, const nlohmann::json& found);

}  // namespace shardwise::cli
