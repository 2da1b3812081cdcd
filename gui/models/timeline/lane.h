#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/drawing/palette.h"
#include "simulator/drawing/span_columns.h"

namespace shardwise::view {

/// Part of a step that is drawn.
struct TimeRange {
  double from = 0;
  double to = 0;
  double length() const { return to - from; }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// Facts that spans are coloured by.
enum class ColourBy : std::uint8_t { kind, microbatch, axis };
inline constexpr std::array<std::string_view, 3> kColourBys = {"kind", "microbatch", "axis"};

/// Colours that spans of a lane can have: the palette's.
inline constexpr std::size_t kColours = sim::kPaints.size();
using ColourSeconds = std::array<double, kColours>;

/// The colour of a span, as a place in the palette. Micro-batches use all of it in turn; an axis
/// has the paint of what it moves.
sim::Paint colour_of(const sim::SpanColumns& spans, std::size_t span, ColourBy by);

/// Busy seconds by colour up to any time, without a look at all spans: every kEvery-th span has the
/// sums of those before it. Shares of pixel columns are exact at every zoom.
class BusySums {
 public:
  static constexpr std::size_t kEvery = 32;
  void build(const sim::SpanColumns& spans, ColourBy by);
  /// Before `time`. \pre spans are those it was built of
  ColourSeconds until(const sim::SpanColumns& spans, ColourBy by, double time) const;

 private:
  std::vector<ColourSeconds> sums_;  // of spans before kEvery x i
  std::vector<double> starts_;       // of that span: what is searched stays in a cache
};

/// Communication inside a span, by axis: tensor, context and expert parallel.
struct WithinSpan {
  static constexpr std::array<TrafficAxis, 3> kAxes = {TrafficAxis::tp, TrafficAxis::cp,
                                                       TrafficAxis::ep};
  std::array<float, 3> exposed{};  // seconds for which it held up the span's kernels
  std::array<float, 3> alone{};    // that it takes
  double sum() const { return static_cast<double>(exposed[0] + exposed[1] + exposed[2]); }
};

/// One stream of one rank.
struct Lane {
  std::size_t stage = 0;
  std::int64_t rank = 0;
  Stream stream = Stream::compute;
  std::string label;  // "stage 0", "send"
  sim::SpanColumns spans;
  std::vector<std::uint32_t> blocks;  // sim::block_starts()
  std::array<BusySums, 2> sums;       // by kind and by micro-batch
  double busy = 0;                    // seconds of it all
  /// Exposed seconds of the spans before each, one more than spans: of a stream that communicates
  /// while nothing computes, of the compute stream inside its passes.
  std::vector<double> exposed;
  std::vector<WithinSpan> within;  // of the compute stream's spans; none where nothing has any
  /// Bytes of the buffers that spans before each moved, and what that is on the bus; one more than
  /// spans, or none where it is not known.
  std::vector<double> moved;
  std::vector<double> on_bus;

  /// First and last + 1 span of a block.
  std::pair<std::size_t, std::size_t> block(std::size_t number) const {
    return {blocks[number], number + 1 < blocks.size() ? blocks[number + 1] : spans.size()};
  }
  double exposed_in(std::size_t first, std::size_t last) const {
    return exposed[last] - exposed[first];
  }
  /// Busy seconds by colour before a time. All of a lane has one axis.
  ColourSeconds busy_until(ColourBy by, double time) const;
};

/// Makes a lane with blocks, sums, busy and exposed seconds.
Lane make_lane(std::size_t stage, std::int64_t rank, sim::SpanColumns spans,
               std::vector<WithinSpan> within = {});

/// The spans, or blocks, that are in the range: from the first to the last + 1.
std::pair<std::size_t, std::size_t> spans_in(const Lane& lane, TimeRange range);
std::pair<std::size_t, std::size_t> blocks_in(const Lane& lane, TimeRange range);

/// The block that a span is of.
std::size_t block_of(const Lane& lane, std::size_t span);

/// The span at a time, or the one nearest within `slack` seconds; size() when there is none.
std::size_t span_at(const Lane& lane, double time, double slack);

/// Column of pixels of a lane: the share of its time that is busy, by colour.
struct Coverage {
  std::array<float, kColours> shares{};
  float share() const;
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

/// Neighbouring columns, from the first to the last + 1, that show the same.
template <class Shown>
struct ColumnRun {
  std::size_t first = 0;
  std::size_t last = 0;
  Shown shown{};
};

/// The busy shares of `columns` equal parts of the range, from the first to the last of them. Spans
/// of any length count by their length: many short ones are as busy as one long. Waiting is not
/// busy. Takes as long as there are edges of spans, or columns where those are fewer.
std::vector<ColumnRun<Coverage>> coverage_runs(const Lane& lane, ColourBy by, TimeRange range,
                                               std::size_t columns);
/// Coverage as above, one for each column.
std::vector<Coverage> coverage(const Lane& lane, ColourBy by, TimeRange range, std::size_t columns);

/// Stretch in which communication is exposed, and how many streams of it, on average: less than
/// one of a pass that has it inside.
struct ExposedStretch {
  double from = 0;
  double to = 0;
  double streams = 0;
};

/// Exposed time of a rank and its sums: what moves while nothing computes, and what passes have
/// inside. Its sum is the exposed time of the report's axes.
struct ExposedStrip {
  std::vector<ExposedStretch> stretches;  // in time; they do not overlap
  std::vector<double> sums;  // seconds x streams of those before each; one more than stretches

  /// Seconds x streams before a time.
  double until(double time) const;
  double whole() const { return sums.back(); }
};
/// \param within  of the spans of the rank's compute stream; none where nothing has any inside
ExposedStrip make_strip(const sim::RankSpans& rank, const std::vector<WithinSpan>& within = {});

/// Streams that are exposed, on average, in each of `columns` equal parts of the range, from the
/// first to the last of them.
std::vector<ColumnRun<float>> exposed_runs(const ExposedStrip& strip, TimeRange range,
                                           std::size_t columns);

}  // namespace shardwise::view
