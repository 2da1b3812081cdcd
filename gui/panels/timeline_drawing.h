#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "gui/models/timeline/lane.h"
#include "gui/panels/ui.h"

namespace shardwise::view {

/// The name of a lane beside it, with its stage where lanes of several may be neighbours.
std::string lane_label(const Ui& ui, const Lane& lane);
/// Width of the names of lanes in the panel, with a gap.
float lane_labels_width(const Ui& ui, const std::vector<Lane>& lanes);

/// Where a part of a step is drawn.
struct Canvas {
  float left = 0;  // whole pixels
  float right = 0;
  TimeRange range;

  float x(double seconds) const {
    return left + static_cast<float>((seconds - range.from) / range.length() * width());
  }
  double seconds(float x) const {
    return range.from + static_cast<double>(x - left) / width() * range.length();
  }
  double width() const { return static_cast<double>(right - left); }
  double pixels(double duration) const { return duration / range.length() * width(); }
};

/// Colours and sizes of lanes, found once a frame.
class LaneInk {
 public:
  LaneInk(const Ui& ui, ColourBy by);
  ColourBy by() const { return by_; }
  /// A paint, nearer to the page for later chunks.
  ImU32 of(sim::Paint paint, int chunk) const;
  ImU32 text_on(sim::Paint paint, int chunk) const;

 private:
  static constexpr std::size_t kShades = 8;
  ColourBy by_;
  std::array<std::array<ImU32, kShades>, kColours> inks_{};
  std::array<std::array<ImU32, kShades>, kColours> texts_{};
};

/// A lane between two heights: blocks that are wide enough, with micro-batches or layers on them,
/// and all others as columns of pixels as dense as they are busy, each colour with its share of the
/// height. The exposed share of a block is hatched. Waiting is an outline. For lanes of any step,
/// predicted or measured.
void draw_lane(Ui& ui, const Canvas& canvas, const LaneInk& ink, const Lane& lane, float top,
               float bottom);

/// Exposed time below a stage: up to one stream in the lower half, what is beyond in the upper.
void draw_exposed(Ui& ui, const Canvas& canvas, const ExposedStrip& strip, float top, float bottom);

/// A line below spans of a lane, by their numbers in time.
void underline(Ui& ui, const Canvas& canvas, const Lane& lane,
               const std::vector<std::uint32_t>& spans, float bottom);

/// The axis of time with its labels, from top to bottom.
void draw_ticks(Ui& ui, const Canvas& canvas, double length, float top, float bottom);

}  // namespace shardwise::view
