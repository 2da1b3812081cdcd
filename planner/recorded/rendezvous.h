#pragma once

#include <span>

#include "planner/recorded/recorded_step.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/mesh.h"

namespace shardwise {

/// Whether groups of `kind` have ranks of several pipeline stages, each with a program of its own.
constexpr bool crosses_stages(GroupKind kind) {
  return kind == GroupKind::pp || kind == GroupKind::world;
}

/// Numbers the rendezvous of a recorded step: a collective is one for each group of ranks that runs
/// it (group_ranks()), a message is one of its two ends. Ranks of a stage run one program; a
/// collective of several stages is found by its position among those of its kind.
/// \param ranks  of the layout, all of them, in order
void number_rendezvous(const Layout& layout, std::span<RecordedStep> ranks);

}  // namespace shardwise
