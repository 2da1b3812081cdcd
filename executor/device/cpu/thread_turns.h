#pragma once

namespace shardwise::exec {

/// Has the calling thread run soon after it can, in turns of 0.1 ms: as much of a processor as
/// before, but ahead of threads that compute, whose turns are longer. What GPUs have streams of
/// high priority for. Systems that do not know of turns (Linux before 6.12) go on as they did.
void take_short_turns();

}  // namespace shardwise::exec
