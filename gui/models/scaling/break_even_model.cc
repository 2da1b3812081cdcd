#include "gui/models/scaling/break_even_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "gui/models/question/layout_text.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kNeither = 2;  // of BreakEven::against

std::vector<std::string> layout_words(const Layout& layout) {
  std::vector<std::string> words;
  std::istringstream text(layout_text(layout));
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

/// Marks that are not shown: the first and the last factor.
struct LeftOut {
  std::size_t count = 0;
  double from = 1;
  double upto = 1;
};

/// Of marks in their order, leaves out those of layouts that are neither the last at or below the
/// cluster as it is nor the first above.
LeftOut leave_out_far_layouts(std::vector<BreakEvenMark>& marks) {
  const BreakEvenMark* below = nullptr;
  const BreakEvenMark* above = nullptr;
  for (const BreakEvenMark& each : marks) {
    if (!each.layout) continue;
    if (each.factor <= 1) below = &each;
    if (each.factor > 1 && above == nullptr) above = &each;
  }
  LeftOut left;
  std::vector<BreakEvenMark> kept;
  for (const BreakEvenMark& each : marks) {
    if (!each.layout || &each == below || &each == above) {
      kept.push_back(each);
      continue;
    }
    if (left.count++ == 0) left.from = each.factor;
    left.upto = each.factor;
  }
  marks = std::move(kept);
  return left;
}

}  // namespace

bool fits_anywhere(const BreakEven& lines) {
  return std::ranges::any_of(lines.lines, [](const std::vector<LinePoint>& line) {
    return std::ranges::any_of(line,
                               [](const LinePoint& point) { return point.layout.has_value(); });
  });
}

std::string lever_key(const ClusterSpec& cluster, const Lever& lever) {
  switch (lever.kind) {
    case LeverKind::bandwidth:
      // A machine's ranks may be linked by its memory.
      return cluster.tiers[lever.tier].name == "memory" || cluster.tiers[lever.tier].name == "price"
                 ? cluster.tiers[lever.tier].name + " link"
                 : cluster.tiers[lever.tier].name;
    case LeverKind::memory:
      return "memory";
    case LeverKind::price:
      break;
  }
  return "price";
}

std::optional<std::size_t> find_lever(const ClusterSpec& cluster, std::string_view key) {
  const std::vector<Lever> levers = levers_of(cluster);
  const auto found = std::ranges::find_if(
      levers, [&](const Lever& each) { return lever_key(cluster, each) == key; });
  if (found == levers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - levers.begin());
}

std::size_t usual_lever(const ClusterSpec& cluster) {
  const auto links = std::ranges::count(levers_of(cluster), LeverKind::bandwidth, &Lever::kind);
  return links > 0 ? static_cast<std::size_t>(links - 1) : 0;
}

std::string value_at(const ClusterSpec& cluster, const Lever& lever, double factor) {
  return lever_value(pulled(cluster, lever, factor), lever);
}

std::string change_text(const Layout& before, const Layout& after) {
  const auto only = [](const std::vector<std::string>& of, const std::vector<std::string>& other) {
    std::vector<std::string> found;
    for (const std::string& each : of) {
      if (std::ranges::find(other, each) == other.end()) found.push_back(each);
    }
    return found;
  };
  const std::vector<std::string> old = layout_words(before);
  const std::vector<std::string> now = layout_words(after);
  const std::vector<std::string> gained = only(now, old);
  const std::vector<std::string> lost = only(old, now);
  if (gained.empty() && lost.empty()) return "another layout of the same degrees";
  if (gained.empty()) return fmt::format("one without {}", fmt::join(lost, " "));
  if (lost.empty()) return fmt::format("one with {}", fmt::join(gained, " "));
  return fmt::format("{} instead of {}", fmt::join(gained, " "), fmt::join(lost, " "));
}

void slow_down(BreakEven& lines, double slower) {
  for (std::vector<LinePoint>& line : lines.lines) {
    for (LinePoint& point : line) {
      point.step_time = point.step_time * slower;
      point.tokens_per_s /= slower;
      point.cost *= slower;
    }
  }
}

std::vector<BreakEvenMark> break_even_marks(const Plan& plan, const BreakEvenView& view) {
  const BreakEven& found = view.found;
  const auto where = [&](double factor) {
    return value_at(plan.cluster, view.levers[view.lever], factor);
  };
  std::vector<BreakEvenMark> marks;
  for (std::size_t c = 1; c < found.against.size(); ++c) {
    const std::vector<Piece>& pieces = found.against[c];
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const std::string& winner = view.contenders[pieces[i].answer == 1 ? c : 0];
      const std::string& loser = view.contenders[pieces[i].answer == 1 ? 0 : c];
      const bool neither = pieces[i].answer == kNeither;
      const std::string words = neither ? "nothing fits"
                                : pieces[i - 1].answer == kNeither
                                    ? fmt::format("{} can run it", winner)
                                    : fmt::format("{} cheaper than {}", winner, loser);
      marks.push_back({pieces[i].from, fmt::format("from {}: {}", where(pieces[i].from), words)});
    }
  }
  for (std::size_t i = 1; i < found.best.size(); ++i) {
    const std::size_t none = found.layouts.size();
    const std::size_t before = found.best[i - 1].answer;
    const std::size_t after = found.best[i].answer;
    const std::string words = after == none ? "nothing fits"
                              : before == none
                                  ? layout_text(found.layouts[after]) + " fits"
                                  : change_text(found.layouts[before], found.layouts[after]);
    marks.push_back(
        {found.best[i].from,
         fmt::format("from {}: {}", where(found.best[i].from),
                     before == none || after == none ? words
                                                     : fmt::format("the best layout of {} is {}",
                                                                   view.contenders.front(), words)),
         true});
  }
  std::ranges::stable_sort(marks, {}, &BreakEvenMark::factor);
  if (marks.size() > kMostMarks) {
    const LeftOut left = leave_out_far_layouts(marks);
    if (left.count > 0) {
      marks.push_back(
          {1,
           fmt::format("from {} to {} the best layout of {} changes {} more times",
                       where(left.from), where(left.upto), view.contenders.front(), left.count),
           true});
    }
  }
  if (marks.empty() && view.known && !found.best.empty()) {
    const bool none = found.best.front().answer == found.layouts.size();
    const std::string words = !none                  ? "nothing changes"
                              : fits_anywhere(found) ? "nothing fits on " + view.contenders.front()
                                                     : "nothing fits";
    marks.push_back({1,
                     fmt::format("from {} to {} {}", where(found.best.front().from),
                                 where(found.best.back().upto), words),
                     true});
  }
  return marks;
}

}  // namespace shardwise::view
