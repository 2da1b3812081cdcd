#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/html/sections.h"
#include "planner/question/layout_words.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/timeline_heading.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::sim {
namespace {

// All in pixels.
constexpr double kLeft = 76;
constexpr double kTop = 14;
constexpr double kWidth = 760;
constexpr double kHeight = 280;
constexpr double kRight = kLeft + kWidth;
constexpr double kBottom = kTop + kHeight;
constexpr double kMargin = 0.06;   // of the ranges of time and memory
constexpr double kLeastRange = 2;  // the slowest time drawn, of the fastest

/// A layout as a dot.
struct Dot {
  Bytes memory;
  Seconds step;
  std::string title;
};

/// Memory to the right, time upwards. Dots are by the step-time model, which has the front.
class FrontChart {
 public:
  FrontChart(const PageContent& page, std::vector<Dot> dots, std::vector<Dot> front)
      : usable_(page.report().verdict.usable),
        dots_(std::move(dots)),
        front_(std::move(front)),
        plan_{page.estimate->verdict.point, page.estimate->step_time, ""} {
    std::vector<Dot> all = dots_;
    all.push_back(plan_);
    const auto slower = [](const Dot& a, const Dot& b) { return a.step < b.step; };
    slowest_ = std::ranges::max_element(all, slower)->step;
    all.insert(all.end(), front_.begin(), front_.end());
    fastest_ = std::ranges::min_element(all, slower)->step;
    slowest_ = std::max(slowest_, kLeastRange * fastest_);
    // The slow end of the front would press all others into one line.
    above_ = std::erase_if(front_, [&](const Dot& dot) { return dot.step > slowest_; });
    most_ = usable_;
    for (const Dot& dot : all) most_ = std::max(most_, dot.memory);
    most_ = Bytes(static_cast<std::int64_t>(static_cast<double>(most_.value()) * (1 + kMargin)));
    const Seconds margin = kMargin * (slowest_ - fastest_);
    fastest_ = std::max(Seconds(0), fastest_ - margin);
    slowest_ = slowest_ + margin;
  }

  std::string text() {
    axes();
    limit();
    line();
    for (const Dot& dot : dots_) mark(dot, "dot", 3.5);
    for (const Dot& dot : front_) mark(dot, "dot on-front", 4.5);
    plan_.title =
        fmt::format("this plan: {}, {}", format_seconds(plan_.step), format_bytes(plan_.memory));
    mark(plan_, "this", 7);
    return fmt::format(
               "<svg class=\"front\" xmlns=\"http://www.w3.org/2000/svg\" "
               "viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n<title>Memory and step time of the "
               "layouts</title>\n",
               kRight + 24, kBottom + 46) +
           body_ + "</svg>\n";
  }

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(body_); }
  double x(Bytes memory) const {
    return kLeft +
           kWidth * static_cast<double>(memory.value()) / static_cast<double>(most_.value());
  }
  double y(Seconds step) const {
    return kBottom - kHeight * ((step - fastest_) / (slowest_ - fastest_));
  }
  void label(double at_x, double at_y, std::string_view style, std::string_view words) {
    fmt::format_to(out(), "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", at_x, at_y,
                   style, escaped(words));
  }

  void axes() {
    for (const Tick& tick : memory_ticks(most_)) {
      const double at = x(Bytes(static_cast<std::int64_t>(tick.value)));
      fmt::format_to(out(), "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" class=\"grid\"/>\n", at, kTop,
                     kBottom);
      label(at, kBottom + 18, "tick", tick.label);
    }
    const Seconds drawn = slowest_ - fastest_;
    for (const Tick& tick : time_ticks_between(fastest_, slowest_, drawn, slowest_)) {
      const double at = y(Seconds(tick.value));
      fmt::format_to(out(), "<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" class=\"grid\"/>\n", kLeft, at,
                     kRight);
      label(kLeft - 8, at + 4, "side", tick.label);
    }
    label(kRight, kBottom + 38, "side", "memory of the fullest GPU");
    std::string words = "step time, upwards";
    if (above_ > 0) {
      words +=
          fmt::format("; {} slower layout{} of the line left out", above_, above_ == 1 ? "" : "s");
    }
    label(kLeft, kBottom + 38, "start", words);
  }

  /// Nothing right of it fits.
  void limit() {
    const double at = x(usable_);
    fmt::format_to(out(),
                   "<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" "
                   "class=\"beyond\"/>\n<path d=\"M{0:.1f} {1:.1f}V{4:.1f}\" class=\"limit\"/>\n",
                   at, kTop, std::max(0.0, kRight - at), kHeight, kBottom);
    label(at - 6, kTop + 12, "side over", "usable " + format_bytes(usable_));
  }

  /// From one layout of the front to the next: less time costs more memory.
  void line() {
    if (front_.empty()) return;
    std::string path = fmt::format("M{:.1f} {:.1f}", x(front_.front().memory),
                                   above_ > 0 ? kTop : y(front_.front().step));
    for (const Dot& dot : front_) {
      path += fmt::format("H{:.1f}V{:.1f}", x(dot.memory), y(dot.step));
    }
    fmt::format_to(out(), "<path d=\"{}\" class=\"line\"/>\n", path);
  }

  void mark(const Dot& dot, std::string_view style, double radius) {
    fmt::format_to(out(),
                   "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"><title>{}</title>"
                   "</circle>\n",
                   x(dot.memory), y(dot.step), radius, style, escaped(dot.title));
  }

  Bytes usable_;
  std::vector<Dot> dots_;
  std::vector<Dot> front_;
  Dot plan_;
  Bytes most_;
  Seconds fastest_;
  Seconds slowest_;
  std::size_t above_ = 0;  // layouts of the front that are slower than what is drawn
  std::string body_;
};

std::string words_of(const Layout& layout) {
  const std::string settings = other_settings(layout);
  return degrees(layout) + (settings.empty() ? "" : ", " + settings);
}

std::vector<Dot> dots_of(const std::vector<PlanRow>& rows) {
  std::vector<Dot> dots;
  for (const PlanRow& row : rows) {
    const Evaluation& cost = row.candidate.cost;
    dots.push_back({cost.point, cost.step_time,
                    fmt::format("{}, {}: {}", format_seconds(cost.step_time),
                                format_bytes(cost.point), words_of(row.candidate.layout))});
  }
  return dots;
}

}  // namespace

std::string front_section(const PageContent& page) {
  if (page.answer == nullptr || page.answer->front.empty()) return "";
  FrontChart chart(page, dots_of(page.answer->best), dots_of(page.answer->front));
  return section("front", "Memory and time",
                 "each dot a layout, the line the best trade, by the closed-form estimate",
                 "<div class=\"wide\">\n" + chart.text() + "</div>\n");
}

}  // namespace shardwise::sim
