#include "gui/models/timeline/lane.h"

#include <algorithm>

namespace shardwise::view {
namespace {

sim::Paint axis_paint(TrafficAxis axis) {
  switch (axis) {
    case TrafficAxis::none:
      return sim::Paint::forward;
    case TrafficAxis::dp:
      return sim::Paint::gather;
    case TrafficAxis::tp:
      return sim::Paint::layer;
    case TrafficAxis::cp:
      return sim::Paint::backward;
    case TrafficAxis::ep:
      return sim::Paint::reduce;
    case TrafficAxis::pp:
      return sim::Paint::message;
    case TrafficAxis::offload:
      return sim::Paint::copy;
  }
  return sim::Paint::forward;
}

/// The first of sorted things from `low` to before `high` that `is_reached`, or else `high`.
template <class IsReached>
std::size_t first_between(std::size_t low, std::size_t high, const IsReached& is_reached) {
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (is_reached(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Sorted pieces of time, of which those in a range are found.
template <class EndOf, class StartOf>
std::pair<std::size_t, std::size_t> in_range(std::size_t count, TimeRange range,
                                             const EndOf& end_of, const StartOf& start_of) {
  const std::size_t first =
      first_between(0, count, [&](std::size_t i) { return end_of(i) > range.from; });
  return {first,
          first_between(first, count, [&](std::size_t i) { return start_of(i) >= range.to; })};
}

/// Spans of a lane as pieces of time that show one colour.
struct BusyPieces {
  const Lane& lane;
  ColourBy by;

  std::size_t size() const { return lane.spans.size(); }
  double begin(std::size_t i) const { return lane.spans.active_start[i]; }
  double end(std::size_t i) const { return lane.spans.end[i]; }
  std::size_t colour(std::size_t i) const {
    // Most often; the rest is a call.
    const sim::Paint paint =
        by == ColourBy::kind ? lane.spans.kind[i] : colour_of(lane.spans, i, by);
    return static_cast<std::size_t>(paint);
  }
  Coverage whole(std::size_t i) const {
    Coverage one;
    one.shares[colour(i)] = 1;
    return one;
  }
  /// Between two times, of pieces from the `first` to the `last` + 1, which reach into it.
  Coverage part(std::size_t first, std::size_t last, double from, double to) const {
    ColourSeconds seconds{};
    if (last - first <= BusySums::kEvery) {
      for (std::size_t i = first; i < last; ++i) {
        const double taken = std::min(end(i), to) - std::max(begin(i), from);
        if (taken > 0) seconds[colour(i)] += taken;
      }
    } else {
      const ColourSeconds before = lane.busy_until(by, from);
      seconds = lane.busy_until(by, to);
      for (std::size_t k = 0; k < kColours; ++k) seconds[k] -= before[k];
    }
    Coverage found;
    const double column = 1 / (to - from);
    for (std::size_t k = 0; k < kColours; ++k) {
      found.shares[k] = static_cast<float>(std::max(0.0, seconds[k]) * column);
    }
    return found;
  }
};

/// Stretches of exposed time as pieces of time that show a number of streams.
struct ExposedPieces {
  const ExposedStrip& strip;

  std::size_t size() const { return strip.stretches.size(); }
  double begin(std::size_t i) const { return strip.stretches[i].from; }
  double end(std::size_t i) const { return strip.stretches[i].to; }
  float whole(std::size_t i) const { return static_cast<float>(strip.stretches[i].streams); }
  float part(std::size_t first, std::size_t last, double from, double to) const {
    double seconds = 0;
    if (last - first <= BusySums::kEvery) {
      for (std::size_t i = first; i < last; ++i) {
        seconds += (std::min(end(i), to) - std::max(begin(i), from)) * strip.stretches[i].streams;
      }
    } else {
      seconds = strip.until(to) - strip.until(from);
    }
    return static_cast<float>(std::max(0.0, seconds) / (to - from));
  }
};

/// Columns of sorted pieces of time: one run for the inside of a piece or of a gap, and one for
/// each column that an edge is in.
template <class Shown, class Pieces>
std::vector<ColumnRun<Shown>> runs_of(const Pieces& pieces, TimeRange range, std::size_t columns) {
  std::vector<ColumnRun<Shown>> runs;
  if (columns == 0 || range.length() <= 0) return runs;
  runs.reserve(columns);
  const double column = range.length() / static_cast<double>(columns);
  const auto time = [&](std::size_t c) {
    return c >= columns ? range.to : range.from + static_cast<double>(c) * column;
  };
  const auto column_of = [&](double seconds) {
    const double c = (seconds - range.from) / column;
    return c >= static_cast<double>(columns) ? columns : static_cast<std::size_t>(c);
  };
  // The first piece from `low` on that `is_reached`; most often it is near.
  const auto first_where = [&](std::size_t low, const auto& is_reached) {
    std::size_t high = low;
    for (std::size_t step = 1; high < pieces.size() && !is_reached(high); step *= 2) {
      low = high + 1;
      high = std::min(pieces.size(), high + step);
    }
    return first_between(low, high, is_reached);
  };
  std::size_t piece = 0;
  for (std::size_t c = 0; c < columns;) {
    const double from = time(c);
    const double to = time(c + 1);
    piece = first_where(piece, [&](std::size_t i) { return pieces.end(i) > from; });
    if (piece == pieces.size()) {
      runs.push_back({c, columns, {}});
      break;
    }
    std::size_t last = c + 1;
    if (pieces.begin(piece) >= to) {
      last = std::max(last, column_of(pieces.begin(piece)));
      runs.push_back({c, last, {}});
    } else if (pieces.begin(piece) <= from && pieces.end(piece) >= to) {
      last = std::max(last, column_of(pieces.end(piece)));
      runs.push_back({c, last, pieces.whole(piece)});
    } else {
      const std::size_t beyond =
          first_where(piece, [&](std::size_t i) { return pieces.begin(i) >= to; });
      runs.push_back({c, last, pieces.part(piece, beyond, from, to)});
    }
    c = last;
  }
  return runs;
}

}  // namespace

sim::Paint colour_of(const sim::SpanColumns& spans, std::size_t span, ColourBy by) {
  switch (by) {
    case ColourBy::kind:
      return spans.kind[span];
    case ColourBy::microbatch: {
      const std::int32_t microbatch = spans.microbatch[span];
      // Those of the whole step have the last colour.
      const auto places = static_cast<std::int32_t>(kColours) - 1;
      return static_cast<sim::Paint>(microbatch < 0 ? places : microbatch % places);
    }
    case ColourBy::axis:
      return axis_paint(spans.axis());
  }
  return spans.kind[span];
}

void BusySums::build(const sim::SpanColumns& spans, ColourBy by) {
  sums_.clear();
  starts_.clear();
  sums_.reserve(spans.size() / kEvery + 1);
  starts_.reserve(spans.size() / kEvery + 1);
  ColourSeconds sum{};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i % kEvery == 0) {
      sums_.push_back(sum);
      starts_.push_back(spans.start[i]);
    }
    sum[static_cast<std::size_t>(colour_of(spans, i, by))] += spans.end[i] - spans.active_start[i];
  }
}

ColourSeconds BusySums::until(const sim::SpanColumns& spans, ColourBy by, double time) const {
  const auto after = std::ranges::lower_bound(starts_, time);
  if (after == starts_.begin()) return {};
  const auto group = static_cast<std::size_t>(after - starts_.begin()) - 1;
  ColourSeconds sum = sums_[group];
  const std::size_t last = std::min(spans.size(), (group + 1) * kEvery);
  for (std::size_t i = group * kEvery; i < last && spans.start[i] < time; ++i) {
    const double until = std::min(time, spans.end[i]);
    if (until <= spans.active_start[i]) continue;
    sum[static_cast<std::size_t>(colour_of(spans, i, by))] += until - spans.active_start[i];
  }
  return sum;
}

ColourSeconds Lane::busy_until(ColourBy by, double time) const {
  if (by != ColourBy::axis) return sums[static_cast<std::size_t>(by)].until(spans, by, time);
  const ColourSeconds found = sums[0].until(spans, ColourBy::kind, time);
  ColourSeconds one{};
  for (const double each : found) one[static_cast<std::size_t>(axis_paint(spans.axis()))] += each;
  return one;
}

Lane make_lane(std::size_t stage, std::int64_t rank, sim::SpanColumns spans,
               std::vector<WithinSpan> within) {
  Lane lane;
  lane.stage = stage;
  lane.rank = rank;
  lane.stream = spans.stream;
  lane.label = std::string(name_of(spans.stream));
  std::ranges::replace(lane.label, '_', ' ');
  lane.spans = std::move(spans);
  lane.blocks = sim::block_starts(lane.spans);
  for (const ColourBy by : {ColourBy::kind, ColourBy::microbatch}) {
    lane.sums[static_cast<std::size_t>(by)].build(lane.spans, by);
  }
  for (std::size_t i = 0; i < lane.spans.size(); ++i) {
    lane.busy += lane.spans.end[i] - lane.spans.active_start[i];
  }
  lane.within = std::move(within);
  lane.exposed.reserve(lane.spans.size() + 1);
  lane.exposed.push_back(0);
  for (std::size_t i = 0; i < lane.spans.size(); ++i) {
    const double inside = lane.within.empty() ? 0 : lane.within[i].sum();
    lane.exposed.push_back(lane.exposed.back() + static_cast<double>(lane.spans.exposed[i]) +
                           inside);
  }
  return lane;
}

std::pair<std::size_t, std::size_t> spans_in(const Lane& lane, TimeRange range) {
  return in_range(
      lane.spans.size(), range, [&](std::size_t i) { return lane.spans.end[i]; },
      [&](std::size_t i) { return lane.spans.start[i]; });
}

std::pair<std::size_t, std::size_t> blocks_in(const Lane& lane, TimeRange range) {
  return in_range(
      lane.blocks.size(), range,
      [&](std::size_t i) { return lane.spans.end[lane.block(i).second - 1]; },
      [&](std::size_t i) { return lane.spans.start[lane.blocks[i]]; });
}

std::size_t block_of(const Lane& lane, std::size_t span) {
  const auto after = std::ranges::upper_bound(lane.blocks, span);
  return static_cast<std::size_t>(after - lane.blocks.begin()) - 1;
}

std::size_t span_at(const Lane& lane, double time, double slack) {
  const auto [first, last] = spans_in(lane, {time - slack, time + slack});
  std::size_t nearest = lane.spans.size();
  double least = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double away = std::max({0.0, lane.spans.start[i] - time, time - lane.spans.end[i]});
    if (nearest != lane.spans.size() && away >= least) continue;
    nearest = i;
    least = away;
    if (away == 0) break;
  }
  return nearest;
}

float Coverage::share() const {
  float sum = 0;
  for (const float each : shares) sum += each;
  return std::min(1.0F, sum);
}

std::vector<ColumnRun<Coverage>> coverage_runs(const Lane& lane, ColourBy by, TimeRange range,
                                               std::size_t columns) {
  return runs_of<Coverage>(BusyPieces{lane, by}, range, columns);
}

std::vector<Coverage> coverage(const Lane& lane, ColourBy by, TimeRange range,
                               std::size_t columns) {
  std::vector<Coverage> covered(columns);
  for (const auto& [first, last, shown] : coverage_runs(lane, by, range, columns)) {
    for (std::size_t c = first; c < last; ++c) covered[c] = shown;
  }
  return covered;
}

double ExposedStrip::until(double time) const {
  const auto after = std::ranges::lower_bound(stretches, time, {}, &ExposedStretch::from);
  const auto count = static_cast<std::size_t>(after - stretches.begin());
  if (count == 0) return 0;
  const ExposedStretch& last = stretches[count - 1];
  return sums[count - 1] + (std::min(time, last.to) - last.from) * last.streams;
}

ExposedStrip make_strip(const sim::RankSpans& rank, const std::vector<WithinSpan>& within) {
  ExposedStrip strip{{}, {0}};
  for (const sim::Exposed& each : sim::exposed_stretches(rank)) {
    strip.stretches.push_back({each.from, each.to, static_cast<double>(each.count())});
  }
  // While a pass computes nothing else is exposed: the two take turns.
  const auto beside = static_cast<std::ptrdiff_t>(strip.stretches.size());
  const sim::SpanColumns* const computing = rank.computing();
  for (std::size_t i = 0; computing != nullptr && i < within.size(); ++i) {
    const double seconds = within[i].sum();
    const double from = computing->active_start[i];
    const double to = computing->end[i];
    if (seconds > 0 && to > from) strip.stretches.push_back({from, to, seconds / (to - from)});
  }
  std::ranges::inplace_merge(strip.stretches, strip.stretches.begin() + beside, {},
                             &ExposedStretch::from);
  for (const ExposedStretch& each : strip.stretches) {
    strip.sums.push_back(strip.sums.back() + (each.to - each.from) * each.streams);
  }
  return strip;
}

std::vector<ColumnRun<float>> exposed_runs(const ExposedStrip& strip, TimeRange range,
                                           std::size_t columns) {
  return runs_of<float>(ExposedPieces{strip}, range, columns);
}

}  // namespace shardwise::view
