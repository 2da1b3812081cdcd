#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "executor/checkpoint/run_id.h"
#include "planner/spec/plan/plan.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {

/// Trains a plan, from the checkpoint of step `begin` in `folder` or, at 0, anew, up to step `end`,
/// with checkpoints after every step of which `keep` stay, as the run `run`. \returns the losses
/// \throws IoError what ended the run
std::vector<double> train_from(const Plan& plan, const std::filesystem::path& folder,
                               std::int64_t begin, std::int64_t end, std::int64_t keep = 0,
                               std::string_view run = kUnnamedRun);
/// On another device than the CPU's own.
std::vector<double> train_from(const Plan& plan, const std::filesystem::path& folder,
                               std::int64_t begin, std::int64_t end, std::int64_t keep,
                               std::string_view run, Device& device);

Layout layout_of(int zero_stage, int dp_shard, int dp_replicate = 1);

}  // namespace shardwise::exec::test
