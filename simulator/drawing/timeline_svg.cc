#include "simulator/drawing/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/lowering/price.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"
#include "simulator/drawing/timeline_blocks.h"
#include "simulator/drawing/timeline_colours.h"
#include "simulator/drawing/timeline_heading.h"
#include "simulator/drawing/timeline_ticks.h"
#include "simulator/drawing/timeline_windows.h"

namespace shardwise::sim {
namespace {

// All in pixels.
constexpr double kLeft = 112;  // of the lanes; their names are before it
constexpr double kWidth = 772;
constexpr double kEnd = kLeft + kWidth;
constexpr double kRight = 116;       // behind the lanes: shares, and the scale of memory
constexpr double kIdle = kEnd + 54;  // where its column of numbers ends
constexpr double kBubble = kEnd + 106;
constexpr double kImbalance = kEnd + 176;
constexpr double kRightOfImbalance = 186;
constexpr double kTop = 108;
constexpr double kComputeLane = 30;
constexpr double kOtherLane = 14;
constexpr double kBetweenLanes = 3;
constexpr double kBetweenStages = 12;
constexpr double kMemory = 90;
constexpr double kLine = 18;         // from one line of text to the next
constexpr double kLabelHeight = 12;  // labels of one scale closer than this would touch
constexpr double kSameLabel = 6;     // a mark this close to the limit says the same
constexpr double kTooSmall = 0.4;    // gaps and blocks narrower than this are not drawn apart
constexpr double kDigit = 7;         // width of one of the numbers that blocks carry
constexpr double kLeastHidden =
    0.01;  // of the step: idle time in gaps too short to draw, to be told
constexpr double kLeastImbalance = 0.0005;  // of the step: what is printed as 0.0 % gets no column
constexpr std::size_t kMostStages = 16;
constexpr std::size_t kMostDetailedStages = 4;
constexpr double kCutMargin = 26;    // from where a window is cut to the next label of time
constexpr double kLeastBusy = 0.01;  // of the step: streams that do less get no lane

class Picture {
 public:
  Picture(const Plan& plan, const Simulation& simulation, TimelineTitle title)
      : plan_(plan),
        simulation_(simulation),
        title_(title),
        layers_(layer_passes(plan)),
        length_(simulation.timeline.length()),
        windows_(drawn_windows(plan, simulation, kLeft, kWidth)) {
    for (const TimeWindow& window : windows_) drawn_ += window.to - window.from;
    const Seconds most = slowest_computing();
    for (const StageTimeline& stage : timeline_of(simulation.report).stages) {
      if ((most - stage.computing) / simulation.report.step_time >= kLeastImbalance)
        unequal_ = true;
    }
  }

  std::string draw() {
    const std::size_t stages = simulation_.program.stages.size();
    const std::size_t drawn = std::min(stages, kMostStages);
    text(kIdle, kTop - 8, "idle", "class=\"head\"");
    text(kBubble, kTop - 8, "bubble", "class=\"head\"");
    if (unequal_) text(kImbalance, kTop - 8, "imbalance", "class=\"head\"");
    for (std::size_t s = 0; s < drawn; ++s) stage(s, drawn <= kMostDetailedStages);
    if (drawn > kMostDetailedStages) y_ += kBetweenStages;
    memory();
    axis();
    legend();
    return whole();
  }

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(body_); }
  /// Seconds too short to be drawn.
  double least_gap() const { return kTooSmall * drawn_ / kWidth; }
  Seconds slowest_computing() const {
    const auto& stages = timeline_of(simulation_.report).stages;
    return std::ranges::max_element(stages, {}, &StageTimeline::computing)->computing;
  }

  void text(double at_x, double at_y, std::string_view words, std::string_view style) {
    fmt::format_to(out(), "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at_x, at_y, style,
                   words);
  }

  void lane(const std::vector<Block>& blocks, double height, bool numbers) {
    for (const TimeWindow& window : windows_) {
      bed(window, height, numbers ? "fill=\"url(#idle)\"" : "class=\"bed\"");
      fill(window, blocks, height, numbers);
    }
  }

  void bed(const TimeWindow& window, double height, std::string_view style) {
    fmt::format_to(out(),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n",
                   window.left, y_, window.right - window.left, height, style);
  }

  /// The blocks of a lane, as far as they are in `window`.
  void fill(const TimeWindow& window, const std::vector<Block>& blocks, double height,
            bool numbers) {
    for (const Block& block : blocks) {
      if (block.to <= window.from || block.from >= window.to) continue;
      const double from = window.x(std::max(block.from, window.from));
      const double width = window.x(std::min(block.to, window.to)) - from;
      if (width < kTooSmall / 2) continue;
      fainter_ = fainter_ || block.chunk > 0;
      // A seam parts a block from the next of its colour.
      const double seam = numbers && width > 3 ? 0.6 : 0;
      fmt::format_to(out(),
                     "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
                     "class=\"{}\"><title>{}</title></rect>\n",
                     from, y_, std::max(width - seam, kTooSmall), height,
                     colours_.block_class(block), words_of(block));
      const bool passes = block.paint == Paint::forward || block.paint == Paint::backward ||
                          block.paint == Paint::weight || block.paint == Paint::recompute;
      if (!numbers || !passes || simulation_.program.num_microbatches == 1) continue;
      const std::string number = fmt::format("{}", block.microbatch);
      if (block.microbatch < 0 || width < kDigit * static_cast<double>(number.size() + 1)) continue;
      numbered_ = true;
      text(from + width / 2, y_ + height / 2 + 4, number,
           fmt::format("class=\"{}\"", TimelineColours::number_class(block)));
    }
  }

  /// As the report has them, of the step. What a stage waits because another computes longer is no
  /// bubble of the schedule.
  void shares(std::size_t s, const StageRunTimes& run, double at_y) {
    const StepReport& report = simulation_.report;
    const StageTimeline& stage = timeline_of(report).stages[s];
    const Seconds imbalance = slowest_computing() - stage.computing;
    const Seconds bubble = std::max(Seconds(0), step_parts(run, layers_).time.bubble - imbalance);
    text(kIdle, at_y, format_percent(stage.idle / report.step_time), "class=\"value\"");
    text(kBubble, at_y, format_percent(bubble / report.step_time), "class=\"value\"");
    if (!unequal_) return;
    text(kImbalance, at_y, format_percent(imbalance / report.step_time), "class=\"value\"");
  }

  void stage(std::size_t s, bool detailed) {
    const StageRunTimes run = run_times(simulation_, s);
    const bool alone = simulation_.program.stages.size() == 1;
    text(kLeft - 8, y_ + kComputeLane / 2 + 4, alone ? "compute" : fmt::format("stage {}", s),
         "class=\"lane\"");
    const RankSpans spans = rank_spans(recorded(run), run.actor->rank);
    const SpanColumns* const kernels = spans.computing();
    const std::vector<Block> computed =
        kernels == nullptr ? std::vector<Block>() : blocks_of(*kernels, least_gap());
    double busy = 0;
    for (const Block& block : computed) busy += block.to - block.from;
    const Seconds computing = timeline_of(simulation_.report).stages[s].computing;
    hidden_ = std::max(hidden_, (busy - computing.value()) / length_);
    lane(computed, kComputeLane, true);
    shares(s, run, y_ + kComputeLane / 2 + 4);
    y_ += kComputeLane;
    for (const SpanColumns& each : spans.streams) {
      if (!detailed || each.stream == Stream::compute) continue;
      const std::vector<Block> blocks = blocks_of(each, least_gap());
      busy = 0;
      for (const Block& block : blocks) busy += block.to - block.from;
      if (busy < kLeastBusy * length_) continue;
      y_ += kBetweenLanes;
      std::string name(name_of(each.stream));
      std::replace(name.begin(), name.end(), '_', ' ');
      text(kLeft - 8, y_ + kOtherLane - 3, name, "class=\"small\"");
      lane(blocks, kOtherLane, false);
      y_ += kOtherLane;
    }
    y_ += detailed ? kBetweenStages : kBetweenLanes;
  }

  std::size_t fullest_stage() const {
    const auto less = [](const MemoryCourse& a, const MemoryCourse& b) {
      return a.peak_allocated < b.peak_allocated;
    };
    const auto& all = simulation_.memory;
    return static_cast<std::size_t>(std::max_element(all.begin(), all.end(), less) - all.begin());
  }

  /// Memory of the fullest stage, from the bottom: outside the allocator, allocated, slack.
  void memory() {
    const std::size_t fullest = fullest_stage();
    const MemoryCourse& course = simulation_.memory[fullest];
    if (course.peak_allocated <= 0) return;
    const std::int64_t outside = outside_allocator(simulation_.report, fullest).value();
    const std::int64_t slack = memory_numbers(simulation_.report).slack().value();
    const std::int64_t whole = outside + course.peak_allocated + slack;
    const Bytes usable = simulation_.report.verdict.usable;
    const std::int64_t top = memory_axis(Bytes(whole), usable).value();
    const std::int64_t limit = usable.value() <= top ? usable.value() : 0;  // 0: not in sight
    memory_legend(course, slack, outside, usable.value());
    const double floor = y_ + kMemory;
    const auto height = [&](double bytes) { return kMemory * bytes / static_cast<double>(top); };
    text(kLeft - 8, y_ + 14, "memory", "class=\"lane\"");
    if (simulation_.memory.size() > 1) {
      text(kLeft - 8, y_ + 29, fmt::format("stage {}", fullest), "class=\"small\"");
    }
    for (const TimeWindow& window : windows_) bed(window, kMemory, "class=\"bed\"");
    for (const TimeWindow& window : windows_) {
      std::string path = fmt::format("M{:.1f} {:.1f}", window.left, floor);
      const MemoryMoment* before = nullptr;
      const auto rise = [&](const MemoryMoment& moment) {
        return fmt::format("V{:.1f}",
                           floor - height(static_cast<double>(moment.allocated + outside)));
      };
      double drawn = -1;
      for (const MemoryMoment& moment : course.moments) {
        if (moment.at > window.to) break;
        if (moment.at < window.from) {
          before = &moment;
          continue;
        }
        if (before != nullptr) path += rise(*std::exchange(before, nullptr));
        // The highest of what falls on one pixel would be lost by drawing only every n-th.
        const double at = window.x(moment.at);
        if (at - drawn < kTooSmall && moment.allocated != course.peak_allocated) continue;
        drawn = at;
        path += fmt::format("H{:.1f}", at) + rise(moment);
      }
      if (before != nullptr) path += rise(*before);
      fmt::format_to(out(), "<path d=\"{}H{:.1f}V{:.1f}Z\" class=\"allocated\"/>\n", path,
                     window.right, floor);
    }
    const auto band = [&](std::int64_t above, std::int64_t bytes, std::string_view name) {
      const auto high = height(static_cast<double>(bytes));
      const double edge = floor - height(static_cast<double>(above)) - high;
      for (const TimeWindow& window : windows_) {
        fmt::format_to(out(),
                       "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
                       "class=\"{}\"/>\n",
                       window.left, edge, window.right - window.left, high, name);
      }
    };
    if (outside > 0) band(0, outside, "outside");
    if (slack > 0) band(outside + course.peak_allocated, slack, "reserved");
    const double line = floor - height(static_cast<double>(limit));
    if (limit == 0 && usable > Bytes(0)) {
      text(kLeft + 8, y_ + 14, fmt::format("usable {}, above", format_bytes(usable)),
           "class=\"over\"");
    }
    if (limit > 0) {
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"limit\"/>\n", kLeft, line,
                     kEnd + 5);
      text(kEnd + 8, line + 4, fmt::format("usable {}", format_bytes(Bytes(limit))),
           "class=\"over\"");
    }
    for (const Tick& tick : memory_ticks(Bytes(top))) {
      const double at = floor - height(tick.value);
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.2f}h5\" class=\"axis\"/>\n", kEnd, at);
      double label = at;
      if (limit > 0 && std::abs(at - line) < kLabelHeight) {
        if (std::abs(at - line) < kSameLabel) continue;
        label = at < line ? line - kLabelHeight : line + kLabelHeight;
      }
      text(kEnd + 8, label + 4, tick.label, "class=\"scale\"");
    }
    y_ = floor;
  }

  void memory_legend(const MemoryCourse& course, std::int64_t slack, std::int64_t outside,
                     std::int64_t limit) {
    double at = kLeft;
    y_ += 14;
    const auto bytes = [](std::int64_t value) { return format_bytes(Bytes(value)); };
    entry(at, "allocated, peak " + bytes(course.peak_allocated), "class=\"allocated\"");
    if (slack > 0) entry(at, "slack above it " + bytes(slack), "class=\"reserved\"");
    if (outside > 0) {
      entry(at, "outside the allocator " + bytes(outside), "class=\"outside\"");
    }
    y_ += limit > 0 ? 14 : 10;  // the limit's label may be at the top of the lane
  }

  void axis() {
    y_ += 6;
    text(kLeft - 8, y_ + 18, "time", "class=\"small\"");
    for (const TimeWindow& window : windows_) {
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"axis\"/>\n", window.left, y_,
                     window.right);
      const bool whole = windows_.size() == 1;
      const std::vector<Tick> ticks =
          whole ? time_ticks(Seconds(length_))
                : time_ticks_between(Seconds(window.from), Seconds(window.to), Seconds(drawn_),
                                     Seconds(length_));
      const auto mark = [&](double at, std::string_view label) {
        fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}v5\" class=\"axis\"/>\n", at, y_);
        text(at, y_ + 18, label, "class=\"tick\"");
        fmt::format_to(std::back_inserter(grid_), "M{:.1f} {:.1f}V{:.1f}", at, kTop - 4, y_);
      };
      bool marked = false;
      for (const Tick& tick : ticks) {
        const double at = window.x(tick.value);
        const bool at_cut = (window.from > 0 && at - window.left < kCutMargin) ||
                            (!whole && window.right - at < kCutMargin);
        if (at_cut) continue;  // labels of two windows would touch
        mark(at, tick.label);
        marked = true;
      }
      if (marked) continue;
      const double middle = (window.from + window.to) / 2;
      mark(window.x(middle), format_seconds(Seconds(middle)));
    }
    y_ += 24;
  }

  /// A colour and what it says at `at`, or at the begin of a new line where that is full; moves on.
  void entry(double& at, std::string_view name, std::string_view fill) {
    const double width = 36 + 6.4 * static_cast<double>(name.size());
    if (at > kLeft && at + width > kEnd) {
      at = kLeft;
      y_ += kLine;
    }
    fmt::format_to(out(), "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"11\" {}/>\n", at,
                   y_ - 10, fill);
    text(at + 19, y_, name, "class=\"key\"");
    at += width;
  }

  void note(std::string_view words) {
    y_ += kLine;
    text(kLeft, y_, words, "class=\"note\"");
  }

  void legend() {
    double at = kLeft;
    y_ += 22;
    for (std::size_t p = 0; p < kPaints.size(); ++p) {
      const auto paint = static_cast<Paint>(p);
      if (!colours_.used(paint)) continue;
      entry(at, kPaints[p].name, fmt::format("class=\"{}\"", TimelineColours::legend_class(paint)));
    }
    entry(at, "idle", "fill=\"url(#idle)\"");
    y_ += 4;
    if (numbered_) note("Numbers are micro-batches.");
    if (fainter_) {
      note(copies_model(plan_.layout)
               ? "Fainter blocks are micro-batches that go the other way, from the last stage."
               : "Fainter blocks are later chunks of the model.");
    }
    note(
        "Idle is the share of the step in which the compute stream runs nothing. "
        "Bubble is the share idle by schedule.");
    if (unequal_) note("Imbalance is the share by which the slowest stage computes longer.");
    if (windows_.size() > 1) {
      const auto seconds = [](const TimeWindow& w) {
        return format_seconds(Seconds(w.to - w.from));
      };
      note(fmt::format("Drawn are the first {}, {} of the middle and the last {} of the step.",
                       seconds(windows_.front()), seconds(windows_[1]), seconds(windows_.back())));
    }
    if (hidden_ > kLeastHidden) note("Some idle gaps are too short to be drawn.");
    const std::size_t stages = simulation_.program.stages.size();
    if (stages > kMostStages) {
      note(fmt::format("The first {} of {} stages are drawn.", kMostStages, stages));
    }
    y_ += 16;
  }

  std::string whole() const {
    const double width = kEnd + (unequal_ ? kRightOfImbalance : kRight);
    return timeline_heading(plan_, simulation_.report, title_, colours_, width, y_) +
           fmt::format("<path d=\"{}\" class=\"grid\"/>\n", grid_) + body_ + "</svg>\n";
  }

  const Plan& plan_;
  const Simulation& simulation_;
  TimelineTitle title_;
  std::vector<LayerTime> layers_;
  double length_;
  std::vector<TimeWindow> windows_;
  double drawn_ = 0;      // seconds, of all windows
  bool unequal_ = false;  // stages compute for different times
  bool fainter_ = false;
  double y_ = kTop;
  TimelineColours colours_;
  bool numbered_ = false;
  double hidden_ = 0;  // the most of a stage, of the step
  std::string grid_;   // path data of the lines under all lanes
  std::string body_;
};

}  // namespace

std::string timeline_svg(const Plan& plan, const Simulation& simulation, TimelineTitle title) {
  return Picture(plan, simulation, title).draw();
}

}  // namespace shardwise::sim
