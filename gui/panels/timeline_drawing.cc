#include "gui/panels/timeline_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/models/timeline/timeline_model.h"
#include "planner/spec/text/units.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::view {
namespace {

constexpr double kLeastDrawnBlock = 3;     // pixels: narrower blocks are drawn as columns
constexpr std::size_t kMostBlocks = 4096;  // of a lane, drawn one by one
constexpr double kSeams = 8;               // pixels of a span from which seams part it

/// Columns from `left` to `right` of equal shares: every colour has its part of the height.
void draw_shares(Fills& fills, const LaneInk& ink, const ColourSteps& steps, ImVec2 least,
                 ImVec2 most) {
  int whole = 0;
  for (const int each : steps) whole += each;
  const auto alpha = static_cast<ImU32>(std::min(whole, kWholeColumn));
  int below = 0;
  float bottom = most.y;
  for (std::size_t c = 0; c < kColours; ++c) {
    if (steps[c] == 0) continue;
    below += steps[c];
    const float share = static_cast<float>(below) / static_cast<float>(whole);
    const float top = below == whole ? least.y : std::round(most.y - share * (most.y - least.y));
    const ImU32 colour =
        (ink.of(static_cast<sim::Paint>(c), 0) & ~IM_COL32_A_MASK) | (alpha << IM_COL32_A_SHIFT);
    if (top < bottom) fills.add({least.x, top}, {most.x, bottom}, colour);
    bottom = top;
  }
}

void draw_columns(const Canvas& canvas, const LaneInk& ink, DrawnColumns& drawn, const Lane& lane,
                  TimeRange part, float top, float bottom) {
  const double columns = canvas.width();
  const double per_column = canvas.range.length() / columns;
  const auto column = [&](double seconds) {
    return std::clamp((seconds - canvas.range.from) / per_column, 0.0, columns);
  };
  const double first = std::floor(column(part.from));
  const double last = std::ceil(column(part.to));
  if (last <= first) return;
  const float left = canvas.left + static_cast<float>(first);
  Fills fills;
  for (const ColumnRun<ColourSteps>& run :
       drawn.of(lane, {static_cast<std::size_t>(first), static_cast<std::size_t>(last)})) {
    draw_shares(fills, ink, run.shown, {left + static_cast<float>(run.first), top},
                {left + static_cast<float>(run.last), bottom});
  }
}

/// The exposed share of what lies between two heights, as stripes from the bottom up. They lie on
/// one grid, so that neighbours join.
void draw_hatch(Ui& ui, double share, ImVec2 least, ImVec2 most) {
  const float high = std::round(static_cast<float>(std::min(share, 1.0)) * (most.y - least.y));
  if (high < 1 || most.x - least.x < 1) return;
  const float top = most.y - high;
  const float every = ui.units(6);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({least.x, top}, most, ui.ink(ui.theme.panel, 0.45F));
  const ImU32 ink = ui.ink(ui.theme.bad);
  // A stripe rises by a pixel for each that it goes right; `at` is where it leaves the bottom.
  for (float at = std::floor((least.x - high) / every) * every; at < most.x; at += every) {
    const float from = std::max(at, least.x);
    const float to = std::min(at + high, most.x);
    if (to <= from) continue;
    list.AddLine({from, most.y - (from - at)}, {to, most.y - (to - at)}, ink, ui.units(1.5F));
  }
  list.AddRectFilled({least.x, top}, {most.x, top + 1}, ink);
}

void draw_block_words(Ui& ui, const std::string& words, ImU32 colour, float from, float to,
                      float top, float bottom) {
  if (bottom - top < ImGui::GetTextLineHeight()) return;
  if (to - from < ImGui::CalcTextSize(words.c_str()).x + ui.units(6)) return;
  draw_text(ui, {(from + to) / 2, (top + bottom - ImGui::GetTextLineHeight()) / 2}, words, colour,
            0.5F);
}

/// Of the time of spans that follow one another.
double exposed_share(const Lane& lane, std::size_t first, std::size_t last) {
  const double active = lane.spans.end[last - 1] - lane.spans.active_start[first];
  return active > 0 ? lane.exposed_in(first, last) / active : 0;
}

/// Spans of a block that are wide enough to be told apart.
void draw_seams(Ui& ui, const Canvas& canvas, const Lane& lane, std::size_t first, std::size_t last,
                ImU32 text, float top, float bottom) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto [from, to] = spans_in(lane, canvas.range);
  for (std::size_t i = std::max(first, from); i < std::min(last, to); ++i) {
    const float left = std::max(canvas.left, canvas.x(lane.spans.active_start[i]));
    const float right = std::min(canvas.right, canvas.x(lane.spans.end[i]));
    draw_hatch(ui, exposed_share(lane, i, i + 1), {left, top}, {right, bottom});
    if (i + 1 < last) {
      list.AddRectFilled({right - ui.units(0.7F), top}, {right, bottom}, ui.ink(ui.theme.panel));
    }
    if (lane.spans.layer[i] < 0) continue;
    draw_block_words(ui, fmt::format("layer {}", lane.spans.layer[i]), text, left, right, top,
                     bottom);
  }
}

void draw_block(Ui& ui, const Canvas& canvas, const LaneInk& ink, const Lane& lane,
                std::size_t first, std::size_t last, float top, float bottom) {
  const sim::SpanColumns& spans = lane.spans;
  const float from = std::max(canvas.left, canvas.x(spans.active_start[first]));
  const float to = std::min(canvas.right, canvas.x(spans.end[last - 1]));
  if (to <= from) return;
  const sim::Paint paint = colour_of(spans, first, ink.by());
  const float seam = to - from > ui.units(4) ? ui.units(0.7F) : 0;
  ImGui::GetWindowDrawList()->AddRectFilled({from, top}, {to - seam, bottom},
                                            ink.of(paint, spans.chunk[first]));
  const ImU32 text = ink.text_on(paint, spans.chunk[first]);
  const double taken = spans.end[last - 1] - spans.active_start[first];
  if (last - first > 1 && canvas.pixels(taken) >= kSeams * static_cast<double>(last - first)) {
    return draw_seams(ui, canvas, lane, first, last, text, top, bottom);
  }
  draw_hatch(ui, exposed_share(lane, first, last), {from, top}, {to - seam, bottom});
  if (spans.microbatch[first] < 0) return;
  draw_block_words(ui, fmt::format("{}", spans.microbatch[first]), text, from, to, top, bottom);
}

}  // namespace

std::string lane_label(const Ui& ui, const Lane& lane) {
  const bool own =
      lane.stream != Stream::compute &&
      (ui.state.timeline.by_stream || ui.state.timeline.pinned.contains(name_of(lane)));
  return own ? fmt::format("{} {}", lane.stage, lane.label) : lane.label;
}

float lane_labels_width(const Ui& ui, const std::vector<Lane>& lanes) {
  constexpr float kLeastOfLabels = 118;
  float width = ui.units(kLeastOfLabels);
  for (const Lane& lane : lanes) {
    width = std::max(width, ImGui::CalcTextSize(lane_label(ui, lane).c_str()).x + ui.units(9));
  }
  return width;
}

LaneInk::LaneInk(const Ui& ui, ColourBy by) : by_(by) {
  for (std::size_t c = 0; c < kColours; ++c) {
    for (std::size_t s = 0; s < kShades; ++s) {
      const std::string shade =
          sim::shade(static_cast<sim::Paint>(c), static_cast<int>(s), ui.theme.ground);
      inks_[c][s] = ui.ink(shade);
      texts_[c][s] = ui.ink(sim::ink_on(shade));
    }
  }
}

ImU32 LaneInk::of(sim::Paint paint, int chunk) const {
  const auto shade = std::min(static_cast<std::size_t>(std::max(0, chunk)), kShades - 1);
  return inks_[static_cast<std::size_t>(paint)][shade];
}

ImU32 LaneInk::text_on(sim::Paint paint, int chunk) const {
  const auto shade = std::min(static_cast<std::size_t>(std::max(0, chunk)), kShades - 1);
  return texts_[static_cast<std::size_t>(paint)][shade];
}

void draw_lane(Ui& ui, const Canvas& canvas, const LaneInk& ink, const Lane& lane, float top,
               float bottom) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({canvas.left, top}, {canvas.right, bottom}, ui.ink(ui.theme.raised, 0.5F));
  const auto [first, last] = blocks_in(lane, canvas.range);
  if (first == last) return;
  if (last - first > kMostBlocks) {
    return draw_columns(canvas, ink, ui.columns, lane, canvas.range, top, bottom);
  }
  const sim::SpanColumns& spans = lane.spans;
  std::size_t narrow = first;  // from here on blocks wait to be drawn as columns
  const auto draw_narrow = [&](std::size_t until) {
    if (narrow == until) return;
    draw_columns(canvas, ink, ui.columns, lane,
                 {spans.start[lane.blocks[narrow]], spans.end[lane.block(until - 1).second - 1]},
                 top, bottom);
  };
  for (std::size_t b = first; b < last; ++b) {
    const auto [begin, end] = lane.block(b);
    const double active = spans.active_start[begin];
    if (canvas.pixels(active - spans.start[begin]) >= kLeastDrawnBlock) {
      // Waiting is no work: an outline.
      list.AddRect({std::max(canvas.left, canvas.x(spans.start[begin])), top},
                   {std::min(canvas.right, canvas.x(active)), bottom}, ui.ink(ui.theme.border));
    }
    if (canvas.pixels(spans.end[end - 1] - active) < kLeastDrawnBlock) continue;
    draw_narrow(b);
    narrow = b + 1;
    draw_block(ui, canvas, ink, lane, begin, end, top, bottom);
  }
  draw_narrow(last);
}

void draw_exposed(Ui& ui, const Canvas& canvas, const ExposedStrip& strip, float top,
                  float bottom) {
  const float middle = std::round((top + bottom) / 2);
  const ImU32 clear = ui.ink(ui.theme.bad, 0);
  Fills fills;
  const auto draw = [&](const ColumnRun<float>& run, float streams, float above, float below) {
    if (streams <= 0) return;
    fills.add({canvas.left + static_cast<float>(run.first), above},
              {canvas.left + static_cast<float>(run.last), below},
              with_alpha(clear, std::min(1.0F, streams)));
  };
  for (const ColumnRun<float>& run :
       exposed_runs(strip, canvas.range, static_cast<std::size_t>(canvas.width()))) {
    draw(run, run.shown, middle, bottom);
    draw(run, run.shown - 1, top, middle);
  }
}

void underline(Ui& ui, const Canvas& canvas, const Lane& lane,
               const std::vector<std::uint32_t>& spans, float bottom) {
  const auto [first, last] = spans_in(lane, canvas.range);
  const auto begin = std::ranges::lower_bound(spans, first);
  const auto end = std::ranges::lower_bound(spans, last);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  float from = 0;
  float to = -1;
  const auto draw = [&] {
    if (to > from) {
      list.AddRectFilled({from, bottom - ui.units(2)}, {to, bottom}, ui.ink(ui.theme.text));
    }
  };
  for (auto each = begin; each != end; ++each) {
    const float left = std::max(canvas.left, canvas.x(lane.spans.active_start[*each]));
    const float right = std::min(canvas.right, canvas.x(lane.spans.end[*each]));
    if (left > to + 1) {
      draw();
      from = left;
    }
    to = std::max(right, left + 1);
  }
  draw();
}

void draw_ticks(Ui& ui, const Canvas& canvas, double length, float top, float bottom) {
  const std::vector<sim::Tick> ticks = sim::time_ticks_between(
      Seconds(canvas.range.from), Seconds(canvas.range.to), Seconds(canvas.range.length()),
      // In the unit of what is drawn: "5 ms", and not "0.005 s".
      Seconds(std::min(length, canvas.range.to)));
  float free = canvas.left;  // right of the last label
  for (const sim::Tick& tick : ticks) {
    const float x = std::floor(canvas.x(tick.value));
    if (x < canvas.left || x > canvas.right) continue;
    const float words = ImGui::CalcTextSize(tick.label.c_str()).x + ui.units(3);
    ImGui::GetWindowDrawList()->AddRectFilled({x, top + ImGui::GetTextLineHeight()},
                                              {x + 1, bottom}, ui.ink(ui.theme.grid));
    if (x < free || x + words > canvas.right) continue;
    free = x + words + ui.units(4);
    draw_text(ui, {x + ui.units(3), top}, tick.label, ui.ink(ui.theme.quiet));
  }
}

}  // namespace shardwise::view
