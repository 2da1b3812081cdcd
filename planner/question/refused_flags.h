#pragma once

#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Flags that a user typed and the engine refuses, though plans may say the same. Two change
/// nothing here and are legal where they are left out: --overlap-param-gather where nothing is
/// gathered,
/// --fused-gradient-accumulation without a buffer to add to. And --loss fused, which versions of
/// Megatron had that are not in use any more, but were measured.
/// \param layout  what read_layout() made of `asked`
Diagnostics refused_flags(const AskedJob& job, const AskedLayout& asked,
                          const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
