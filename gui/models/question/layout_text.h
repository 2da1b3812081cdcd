#pragma once

#include <string>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// "llama-3.1-70b on 64 x dgx-h100", and "megatron_fsdp, batch 1,024 x 4,096 tokens".
std::string title_text(const Plan& plan);
std::string question_text(const Plan& plan);
/// Layout in words that people use: "tp2 cp2 pp8 vpp2 dp2 zero-1 mbs1 no recompute".
std::string layout_text(const Layout& layout);

}  // namespace shardwise::view
