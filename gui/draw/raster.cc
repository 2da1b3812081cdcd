#include "gui/draw/raster.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace shardwise::view {
namespace {

constexpr int kSubpixels = 256;
constexpr int kCentre = kSubpixels / 2;

/// Pixels from left and top up to, and without, right and bottom.
struct Clip {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

/// A corner of a triangle, in 1/256 pixels.
struct Corner {
  std::int64_t x = 0;
  std::int64_t y = 0;
  ImVec2 uv;
  std::array<float, 4> colour{};  // red, green, blue, alpha: 0 to 255
};

Corner corner(const ImDrawVert& vertex, ImVec2 origin, ImVec2 scale) {
  Corner made;
  made.x = std::llround((vertex.pos.x - origin.x) * scale.x * float{kSubpixels});
  made.y = std::llround((vertex.pos.y - origin.y) * scale.y * float{kSubpixels});
  made.uv = vertex.uv;
  constexpr std::array<int, 4> kShifts = {IM_COL32_R_SHIFT, IM_COL32_G_SHIFT, IM_COL32_B_SHIFT,
                                          IM_COL32_A_SHIFT};
  for (std::size_t i = 0; i < kShifts.size(); ++i) {
    made.colour[i] = static_cast<float>((vertex.col >> kShifts[i]) & 0xFFU);
  }
  return made;
}

/// Twice the signed area of the triangle of an edge and a point; above 0 where it is to the right
/// of an edge that goes down the screen's way round.
std::int64_t area(const Corner& from, const Corner& to, std::int64_t x, std::int64_t y) {
  return (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
}

/// Of two triangles at an edge, the one to which pixels exactly on it belong.
bool owns_edge(const Corner& from, const Corner& to) {
  const bool top = from.y == to.y && to.x > from.x;
  const bool left = to.y < from.y;
  return top || left;
}

/// Multipliers of a texel, 0 to 1.
std::array<float, 4> texel(const ImTextureData& texture, int x, int y) {
  x = std::clamp(x, 0, texture.Width - 1);
  y = std::clamp(y, 0, texture.Height - 1);
  const unsigned char* at = texture.Pixels + static_cast<std::size_t>(x + y * texture.Width) *
                                                 static_cast<std::size_t>(texture.BytesPerPixel);
  constexpr float kWhole = 255.0F;
  if (texture.Format == ImTextureFormat_Alpha8) {
    return {1, 1, 1, static_cast<float>(*at) / kWhole};
  }
  return {static_cast<float>(at[0]) / kWhole, static_cast<float>(at[1]) / kWhole,
          static_cast<float>(at[2]) / kWhole, static_cast<float>(at[3]) / kWhole};
}

std::array<float, 4> sample(const ImTextureData& texture, float u, float v) {
  const float x = u * static_cast<float>(texture.Width) - 0.5F;
  const float y = v * static_cast<float>(texture.Height) - 0.5F;
  const float left = std::floor(x);
  const float top = std::floor(y);
  const float right_share = x - left;
  const float bottom_share = y - top;
  const int column = static_cast<int>(left);
  const int row = static_cast<int>(top);
  std::array<float, 4> mixed{};
  for (int i = 0; i < 4; ++i) {
    const float share = ((i & 1) != 0 ? right_share : 1 - right_share) *
                        ((i & 2) != 0 ? bottom_share : 1 - bottom_share);
    if (share == 0) continue;
    const std::array<float, 4> one = texel(texture, column + (i & 1), row + (i >> 1));
    for (std::size_t c = 0; c < one.size(); ++c) mixed[c] += share * one[c];
  }
  return mixed;
}

/// Rounded; 0 <= value <= 255.
int rounded(float value) { return static_cast<int>(value * 256.0F + 128.0F) / 256; }

/// A colour to be laid over pixels.
struct Coat {
  std::array<int, 3> over{};
  int kept = 0;  // of a pixel, in parts of 255

  explicit Coat(const std::array<float, 4>& colour) {
    const int alpha = rounded(colour[3]);
    for (std::size_t c = 0; c < over.size(); ++c) over[c] = rounded(colour[c]) * alpha;
    kept = 255 - alpha;
  }
  void blend(std::uint8_t* pixel) const {
    for (std::size_t c = 0; c < over.size(); ++c) {
      pixel[c] = static_cast<std::uint8_t>((over[c] + pixel[c] * kept + 127) / 255);
    }
  }
};

/// Pixels of a row, counted from some pixel on.
struct RowPart {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  /// Keeps those at which a value is not below 0 that is `first` at pixel 0 and grows by `step`.
  void keep(std::int64_t first, std::int64_t step) {
    if (step > 0 && first < 0) begin = std::max(begin, (step - 1 - first) / step);
    if (step < 0 && first >= 0) end = std::min(end, first / -step + 1);
    if (step <= 0 && first < 0) end = begin;
  }
};

class Triangles {
 public:
  Triangles(Image& image, const ImTextureData& texture, const Clip& clip)
      : image_(image), texture_(texture), clip_(clip) {}

  void draw(const Corner& a, Corner b, Corner c) {
    std::int64_t whole = area(a, b, c.x, c.y);
    if (whole == 0) return;
    if (whole < 0) {
      std::swap(b, c);
      whole = -whole;
    }
    const bool plain =
        a.colour == b.colour && b.colour == c.colour && same(a.uv, b.uv) && same(b.uv, c.uv);
    const std::array<float, 4> flat = plain ? shaded(a.colour, a.uv) : std::array<float, 4>{};
    if (plain && flat[3] == 0) return;
    const Coat coat(flat);
    const auto least = std::min({a.x, b.x, c.x});
    const auto most = std::max({a.x, b.x, c.x});
    const auto top = std::min({a.y, b.y, c.y});
    const auto bottom = std::max({a.y, b.y, c.y});
    const int from_x = std::max(clip_.left, pixel_of(least));
    const int to_x = std::min(clip_.right, pixel_of(most) + 1);
    const int from_y = std::max(clip_.top, pixel_of(top));
    const int to_y = std::min(clip_.bottom, pixel_of(bottom) + 1);
    // A pixel on an edge that the triangle does not own is outside.
    const std::int64_t bias_a = owns_edge(b, c) ? 0 : -1;
    const std::int64_t bias_b = owns_edge(c, a) ? 0 : -1;
    const std::int64_t bias_c = owns_edge(a, b) ? 0 : -1;
    for (int y = from_y; y < to_y; ++y) {
      const std::int64_t centre_y = std::int64_t{y} * kSubpixels + kCentre;
      const std::int64_t centre_x = std::int64_t{from_x} * kSubpixels + kCentre;
      std::int64_t of_a = area(b, c, centre_x, centre_y);
      std::int64_t of_b = area(c, a, centre_x, centre_y);
      const std::int64_t of_c = area(a, b, centre_x, centre_y);
      const std::int64_t step_a = (b.y - c.y) * kSubpixels;
      const std::int64_t step_b = (c.y - a.y) * kSubpixels;
      const std::int64_t step_c = (a.y - b.y) * kSubpixels;
      RowPart inside{0, to_x - from_x};
      inside.keep(of_a + bias_a, step_a);
      inside.keep(of_b + bias_b, step_b);
      inside.keep(of_c + bias_c, step_c);
      if (inside.begin >= inside.end) continue;
      std::uint8_t* pixel = image_.at(from_x + static_cast<int>(inside.begin), y);
      if (plain) {
        for (std::int64_t x = inside.begin; x < inside.end; ++x, pixel += 3) coat.blend(pixel);
        continue;
      }
      of_a += inside.begin * step_a;
      of_b += inside.begin * step_b;
      for (std::int64_t x = inside.begin; x < inside.end; ++x, pixel += 3) {
        Coat(mixed(a, b, c, static_cast<float>(of_a), static_cast<float>(of_b),
                   static_cast<float>(whole)))
            .blend(pixel);
        of_a += step_a;
        of_b += step_b;
      }
    }
  }

 private:
  static bool same(ImVec2 a, ImVec2 b) { return a.x == b.x && a.y == b.y; }
  /// The pixel that a place lies in.
  static int pixel_of(std::int64_t place) {
    const std::int64_t pixel =
        place >= 0 ? place / kSubpixels : -((kSubpixels - 1 - place) / kSubpixels);
    return static_cast<int>(std::clamp<std::int64_t>(pixel, -1, 1 << 20));
  }

  std::array<float, 4> shaded(std::array<float, 4> colour, ImVec2 uv) const {
    const std::array<float, 4> by = sample(texture_, uv.x, uv.y);
    for (std::size_t i = 0; i < colour.size(); ++i) colour[i] *= by[i];
    return colour;
  }
  std::array<float, 4> mixed(const Corner& a, const Corner& b, const Corner& c, float of_a,
                             float of_b, float whole) const {
    const float share_a = of_a / whole;
    const float share_b = of_b / whole;
    const float share_c = 1 - share_a - share_b;
    std::array<float, 4> colour{};
    for (std::size_t i = 0; i < colour.size(); ++i) {
      const float value = share_a * a.colour[i] + share_b * b.colour[i] + share_c * c.colour[i];
      colour[i] = std::clamp(value, 0.0F, 255.0F);
    }
    return shaded(colour, {share_a * a.uv.x + share_b * b.uv.x + share_c * c.uv.x,
                           share_a * a.uv.y + share_b * b.uv.y + share_c * c.uv.y});
  }

  Image& image_;
  const ImTextureData& texture_;
  Clip clip_;
};

Clip clip_of(const ImDrawCmd& command, ImVec2 origin, ImVec2 scale, const Image& image) {
  const auto place = [](float value, float from, float factor) {
    return static_cast<int>(std::floor((value - from) * factor + 0.5F));
  };
  return {std::max(0, place(command.ClipRect.x, origin.x, scale.x)),
          std::max(0, place(command.ClipRect.y, origin.y, scale.y)),
          std::min(image.width, place(command.ClipRect.z, origin.x, scale.x)),
          std::min(image.height, place(command.ClipRect.w, origin.y, scale.y))};
}

}  // namespace

void serve_textures() {
  for (ImTextureData* const texture : ImGui::GetPlatformIO().Textures) {
    if (texture->Status == ImTextureStatus_WantCreate ||
        texture->Status == ImTextureStatus_WantUpdates) {
      texture->SetTexID(static_cast<ImTextureID>(texture->UniqueID) + 1);
      texture->SetStatus(ImTextureStatus_OK);
    } else if (texture->Status == ImTextureStatus_WantDestroy && texture->UnusedFrames > 0) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
  }
}

Image rasterise(const ImDrawData& data, std::array<std::uint8_t, 3> background) {
  const ImVec2 scale = data.FramebufferScale;
  Image image(static_cast<int>(data.DisplaySize.x * scale.x),
              static_cast<int>(data.DisplaySize.y * scale.y), background);
  for (const ImDrawList* const list : data.CmdLists) {
    for (const ImDrawCmd& command : list->CmdBuffer) {
      const ImTextureData* const texture = command.TexRef._TexData;
      if (command.UserCallback != nullptr || texture == nullptr || texture->Pixels == nullptr) {
        continue;
      }
      const Clip clip = clip_of(command, data.DisplayPos, scale, image);
      if (clip.left >= clip.right || clip.top >= clip.bottom) continue;
      Triangles triangles(image, *texture, clip);
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
        const auto at = [&](unsigned which) {
          const ImDrawIdx index = list->IdxBuffer[static_cast<int>(command.IdxOffset + i + which)];
          return corner(list->VtxBuffer[static_cast<int>(command.VtxOffset + index)],
                        data.DisplayPos, scale);
        };
        triangles.draw(at(0), at(1), at(2));
      }
    }
  }
  return image;
}

}  // namespace shardwise::view
