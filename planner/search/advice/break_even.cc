#include "planner/search/advice/break_even.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/estimate/gpu_hour_price.h"
#include "planner/search/advice/best_layout.h"

namespace shardwise {
namespace {

using Ask = std::function<std::optional<std::size_t>(double)>;

/// What a factor was answered.
struct Asked {
  double factor = 1;
  std::size_t answer = 0;
};

/// Adds to the pieces what lies between the end of the last one and `above`. \returns false when
/// the answers have ended
bool cut(const Asked& below, const Asked& above, double tolerance, const Ask& ask,
         std::vector<Piece>& found) {
  if (below.answer == above.answer) {
    found.back().upto = above.factor;
    return true;
  }
  if (above.factor <= below.factor * (1 + tolerance)) {
    found.push_back({above.factor, above.factor, above.answer});
    return true;
  }
  const double middle = std::sqrt(below.factor * above.factor);
  const std::optional<std::size_t> answer = ask(middle);
  if (!answer) return false;
  return cut(below, {middle, *answer}, tolerance, ask, found) &&
         cut({middle, *answer}, above, tolerance, ask, found);
}

/// The lines' points, each searched once.
class Points {
 public:
  explicit Points(const BreakEvenQuestion& question) : q_(question) {
    dollars_ = std::ranges::all_of(
        q_.contenders, [](const Contender& c) { return gpu_hour_price(c.cluster).has_value(); });
    known_.resize(q_.contenders.size());
  }

  bool dollars() const { return dollars_; }

  /// nullptr when the search was stopped.
  const LinePoint* at(std::size_t contender, double factor) {
    const Contender& who = q_.contenders[contender];
    std::map<double, LinePoint>& known = known_[contender];
    const auto before = known.find(factor);
    if (before != known.end()) return &before->second;
    const bool same = !who.pulled || q_.lever.kind == LeverKind::price;
    if (same && factor != 1) {
      const LinePoint* const one = at(contender, 1);
      if (one == nullptr) return nullptr;
      LinePoint point = *one;
      point.factor = factor;
      if (who.pulled && dollars_) point.cost *= factor;
      return &known.emplace(factor, point).first->second;
    }
    const ClusterSpec cluster =
        who.pulled ? shardwise::pulled(who.cluster, q_.lever, factor) : who.cluster;
    const BestLayout best =
        best_layout({q_.model, &cluster, q_.job, q_.engine, false, q_.memory, q_.stop});
    if (best.stopped || q_.stop.stop_requested()) return nullptr;
    return &known.emplace(factor, point_of(factor, cluster, best)).first->second;
  }

 private:
  LinePoint point_of(double factor, const ClusterSpec& cluster, const BestLayout& best) const {
    LinePoint point;
    point.factor = factor;
    if (!best.report || best.report->verdict.fit != Fit::fits) return point;
    const StepReport& report = *best.report;
    point.layout = report.layout;
    point.step_time = report.step_time;
    point.tokens_per_s = report.tokens_per_s;
    point.cost = dollars_ ? report.dollars_per_1e9_tokens
                          : 1e9 / report.tokens_per_s / 3600 * static_cast<double>(cluster.gpus);
    return point;
  }

  const BreakEvenQuestion& q_;
  bool dollars_ = false;
  std::vector<std::map<double, LinePoint>> known_;  // by contender and factor
};

}  // namespace

std::vector<Piece> pieces(std::span<const double> grid, double tolerance, const Ask& answer) {
  std::vector<Piece> found;
  std::optional<Asked> below;
  for (const double factor : grid) {
    const std::optional<std::size_t> here = answer(factor);
    if (!here) return found;
    const Asked above{factor, *here};
    if (!below) found.push_back({factor, factor, *here});
    if (below && !cut(*below, above, tolerance, answer, found)) return found;
    below = above;
  }
  return found;
}

std::vector<double> usual_grid(const Lever& lever) {
  constexpr int kSteps = 4;  // to either side
  const double most = lever.kind == LeverKind::bandwidth ? 3 : 2;
  std::vector<double> grid;
  for (int step = -kSteps; step <= kSteps; ++step) grid.push_back(std::exp2(step * most / kSteps));
  return grid;
}

BreakEven break_even(const BreakEvenQuestion& q,
                     const std::function<void(const BreakEven&)>& progress) {
  Points points(q);
  BreakEven found;
  found.dollars = points.dollars();
  found.lines.resize(q.contenders.size());
  for (const double factor : q.grid) {
    for (std::size_t c = 0; c < q.contenders.size(); ++c) {
      const LinePoint* const point = points.at(c, factor);
      if (point == nullptr) return found;
      found.lines[c].push_back(*point);
    }
    if (progress) progress(found);
  }
  found.against.resize(q.contenders.size());
  for (std::size_t c = 1; c < q.contenders.size(); ++c) {
    found.against[c] =
        pieces(q.grid, q.tolerance, [&](double factor) -> std::optional<std::size_t> {
          const LinePoint* const first = points.at(0, factor);
          const LinePoint* const other = points.at(c, factor);
          if (first == nullptr || other == nullptr) return std::nullopt;
          if (!first->layout && !other->layout) return 2;
          return !first->layout || (other->layout && other->cost < first->cost) ? 1 : 0;
        });
    if (progress) progress(found);
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  found.best = pieces(q.grid, q.tolerance, [&](double factor) -> std::optional<std::size_t> {
    const LinePoint* const point = points.at(0, factor);
    if (point == nullptr) return std::nullopt;
    if (!point->layout) return kNone;
    const auto known = std::ranges::find(found.layouts, *point->layout);
    const auto place = static_cast<std::size_t>(known - found.layouts.begin());
    if (known == found.layouts.end()) found.layouts.push_back(*point->layout);
    return place;
  });
  for (Piece& piece : found.best) piece.answer = std::min(piece.answer, found.layouts.size());
  found.done = !q.stop.stop_requested();
  return found;
}

}  // namespace shardwise
