#include "planner/cost/memory/stage_moments.h"

namespace shardwise {
namespace {

/// \param held_of  what is held while a pass of a chunk runs
template <class HeldOf>
OtherPasses kept_by_others(const StageParts& parts, std::int32_t chunk, HeldOf held_of) {
  OtherPasses fullest;
  const SavedChunks saved(parts.chunk_saved);
  for (std::size_t c = 0; c < parts.chunk_like.size(); ++c) {
    if (parts.chunk_like[c] != chunk) continue;
    const HeldPasses held = held_of(static_cast<std::int32_t>(c), saved);
    const std::int64_t bytes = bytes_of(held, saved);
    if (bytes > fullest.bytes) fullest = {held, bytes};
  }
  return fullest;
}

OtherPasses kept_by_others(const StageParts& parts, const StageContext& context, std::int32_t chunk,
                           bool backward) {
  return kept_by_others(parts, chunk, [&](std::int32_t c, const SavedChunks& saved) {
    return held_passes(*context.layout, context.stage, context.num_microbatches, c, backward,
                       saved);
  });
}

}  // namespace

OtherPasses other_passes(const StageParts& parts, const StageContext& context, std::int32_t chunk,
                         bool backward) {
  if (context.layout->offload_activations) return {};
  return kept_by_others(parts, context, chunk, backward);
}

OtherPasses other_passes_when_joining(const StageParts& parts, const StageContext& context,
                                      std::int32_t chunk) {
  if (context.layout->offload_activations) return {};
  return kept_by_others(parts, chunk, [&](std::int32_t c, const SavedChunks& saved) {
    return held_when_joining(*context.layout, context.stage, context.num_microbatches, c, saved);
  });
}

void remember_other_passes(StageParts& parts, const HeldChoices& choices) {
  parts.in_flight.resize(parts.chunk_like.size());
  for (std::size_t c = 0; c < parts.in_flight.size(); ++c) {
    const auto chunk = static_cast<std::int32_t>(c);
    if (parts.chunk_like[c] != chunk) continue;
    parts.in_flight[c] = {choices.most(chunk, false, parts.chunk_saved),
                          choices.most(chunk, true, parts.chunk_saved)};
  }
}

}  // namespace shardwise
