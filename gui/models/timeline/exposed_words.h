#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gui/models/timeline/timeline_model.h"

namespace shardwise::view {

/// Exposed time of a span in words: "all-to-all of experts: 40 ms exposed of 55 ms"; of several
/// axes inside a pass the one that is exposed longest, and all of them. Empty where nothing is.
std::string exposed_words(const StepLanes& step, const Lane& lane, std::size_t span);

/// The span that is exposed longest, with what moves and for which layer.
std::optional<WorstSpan> worst_span(const StepLanes& step);

}  // namespace shardwise::view
