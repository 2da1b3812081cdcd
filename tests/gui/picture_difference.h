#pragma once

#include <cstddef>

#include "gui/draw/image.h"

namespace shardwise::test {

/// Channels in which two pictures of a size differ by more than one step of 255: ImGui takes a
/// processor's approximate square roots, whose last bits are its own.
std::size_t differing_channels(const view::Image& a, const view::Image& b);

}  // namespace shardwise::test
