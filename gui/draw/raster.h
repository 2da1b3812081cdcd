#pragma once

#include <array>
#include <cstdint>

#include "gui/draw/image.h"

struct ImDrawData;

namespace shardwise::view {

/// Does what ImGui asks of a backend's textures: the rasteriser reads their pixels where ImGui has
/// them. After each frame, with a context that has ImGuiBackendFlags_RendererHasTextures.
void serve_textures();

/// Draws triangles on the CPU as a GPU does: pixels whose centre is inside, the top-left rule on
/// shared edges, colours and texture coordinates interpolated, texels filtered bilinearly, alpha
/// blended, clipped to each command's rectangle. Vertices are rounded to 1/256 of a pixel and edges
/// computed in integers, so that the same draw data gives the same bytes under every compiler.
/// Textures are those that ImGui owns; user callbacks are not called.
Image rasterise(const ImDrawData& data, std::array<std::uint8_t, 3> background);

}  // namespace shardwise::view
