#include "simulator/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include "planner/lowering/price.h"
#include "planner/spec/format.h"
#include "simulator/stage_summary.h"
#include "simulator/step_report.h"
#include "simulator/timeline_blocks.h"
#include "simulator/timeline_ticks.h"

namespace shardwise::sim {
namespace {

// All in pixels.
constexpr double kLeft = 112;  // of the lanes; their names are before it
constexpr double kWidth = 772;
constexpr double kEnd = kLeft + kWidth;
constexpr double kRight = 116;       // behind the lanes: shares, and the scale of memory
constexpr double kIdle = kEnd + 54;  // where its column of numbers ends
constexpr double kBubble = kEnd + 106;
constexpr double kTop = 108;
constexpr double kComputeLane = 30;
constexpr double kOtherLane = 14;
constexpr double kBetweenLanes = 3;
constexpr double kBetweenStages = 12;
constexpr double kMemory = 90;
constexpr double kLine = 18;         // from one line of text to the next
constexpr double kLabelHeight = 13;  // labels of one scale closer than this would touch
constexpr double kTooSmall = 0.4;    // gaps and blocks narrower than this are not drawn apart
constexpr double kDigit = 7;         // width of one of the numbers that blocks carry
constexpr double kLeastHidden =
    0.01;  // of the step: idle time in gaps too short to draw, to be told
constexpr std::size_t kMostStages = 16;
constexpr std::size_t kMostDetailedStages = 4;
constexpr double kLeastBusy = 0.01;  // of the step: streams that do less get no lane

// The second half holds for a reader whose system is set to dark.
constexpr std::string_view kStyle =
    "<style>text{font-family:Inter,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;"
    "fill:#1f2933}.title{font-size:17px;font-weight:600}.lane,.small,.value{text-anchor:end}"
    ".lane{font-size:13px}.small,.number,.scale,.head{font-size:11px}.number,.tick{"
    "text-anchor:middle}.number{fill:#fff}.on-pale{fill:#1f2933}.head{text-anchor:end}"
    ".sub,.small,.tick,.scale,.head,.note{fill:#52606d}.axis{stroke:#9aa5b1;fill:none}"
    ".grid{stroke:#e4e7eb;fill:none}.page{fill:#fff}.bed{fill:#f4f5f7}"
    ".hatch{stroke:#cbd2d9;stroke-width:2}.allocated{fill:#aebfd6}.reserved{fill:#dde3ec}"
    ".outside{fill:#8593a5}.limit{stroke:#c62828;stroke-width:1.5;stroke-dasharray:6 4;fill:none}"
    ".over{fill:#c62828;font-size:11px}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.number{fill:#fff}.on-pale{fill:#1f2933}"
    ".sub,.small,.tick,.scale,.head,.note{fill:#a3adb8}.axis{stroke:#6e7681}.grid{stroke:#272e37}"
    ".page{fill:#0d1117}.bed{fill:#1c222b}.hatch{stroke:#3b4450}.allocated{fill:#5b7aa3}"
    ".reserved{fill:#34404f}.outside{fill:#7d8896}.limit{stroke:#ff7b72}.over{fill:#ff7b72}}"
    "</style>\n"
    "<defs><pattern id=\"idle\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"bed\"/>"
    "<path d=\"M0 0V6\" class=\"hatch\"/></pattern></defs>\n";

std::string escaped(std::string_view words) {
  std::string made;
  for (const char c : words) {
    if (c == '&')
      made += "&amp;";
    else if (c == '<')
      made += "&lt;";
    else
      made += c;
  }
  return made;
}

class Picture {
 public:
  Picture(const Plan& plan, const Simulation& simulation)
      : plan_(plan),
        simulation_(simulation),
        layers_(layer_passes(plan)),
        length_(simulation.timeline.length()) {}

  std::string draw() {
    const std::size_t stages = simulation_.program.stages.size();
    const std::size_t drawn = std::min(stages, kMostStages);
    text(kIdle, kTop - 8, "idle", "class=\"head\"");
    text(kBubble, kTop - 8, "bubble", "class=\"head\"");
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
  double least_gap() const { return kTooSmall * length_ / kWidth; }
  double x(double seconds) const { return kLeft + kWidth * seconds / length_; }

  void text(double at_x, double at_y, std::string_view words, std::string_view style) {
    fmt::format_to(out(), "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at_x, at_y, style,
                   words);
  }

  void lane(const std::vector<Block>& blocks, double height, bool numbers) {
    fmt::format_to(out(),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n",
                   kLeft, y_, kWidth, height, numbers ? "fill=\"url(#idle)\"" : "class=\"bed\"");
    for (const Block& block : blocks) {
      const double from = x(block.from);
      const double width = x(block.to) - from;
      if (width < kTooSmall / 2) continue;
      used_[static_cast<std::size_t>(block.paint)] = true;
      const std::string colour = colour_of(block);
      // A seam parts a block from the next of its colour.
      const double seam = numbers && width > 3 ? 0.6 : 0;
      fmt::format_to(out(),
                     "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
                     "fill=\"{}\"/>\n",
                     from, y_, std::max(width - seam, kTooSmall), height, colour);
      const bool passes = block.paint == Paint::forward || block.paint == Paint::backward ||
                          block.paint == Paint::weight || block.paint == Paint::recompute;
      if (!numbers || !passes || simulation_.program.num_microbatches == 1) continue;
      const std::string number = fmt::format("{}", block.microbatch);
      if (block.microbatch < 0 || width < kDigit * static_cast<double>(number.size() + 1)) continue;
      numbered_ = true;
      text(from + width / 2, y_ + height / 2 + 4, number,
           is_pale(colour) ? "class=\"number on-pale\"" : "class=\"number\"");
    }
  }

  /// As the report has them, of the step.
  void shares(std::size_t s, const StageRunTimes& run, double at_y) {
    const StepReport& report = simulation_.report;
    const Seconds bubble = step_parts(run, layers_).time.bubble;
    text(kIdle, at_y, format_percent(report.timeline->stages[s].idle / report.step_time),
         "class=\"value\"");
    text(kBubble, at_y, format_percent(bubble / report.step_time), "class=\"value\"");
  }

  void stage(std::size_t s, bool detailed) {
    const StageRunTimes run = run_times(simulation_, s);
    const bool alone = simulation_.program.stages.size() == 1;
    text(kLeft - 8, y_ + kComputeLane / 2 + 4, alone ? "compute" : fmt::format("stage {}", s),
         "class=\"lane\"");
    const std::vector<Block> computed = blocks_of(run, Stream::compute, least_gap());
    double busy = 0;
    for (const Block& block : computed) busy += block.to - block.from;
    const Seconds computing = simulation_.report.timeline->stages[s].computing;
    hidden_ = std::max(hidden_, (busy - computing.value()) / length_);
    lane(computed, kComputeLane, true);
    shares(s, run, y_ + kComputeLane / 2 + 4);
    y_ += kComputeLane;
    for (std::size_t stream = 1; detailed && stream < kStreams; ++stream) {
      const auto which = static_cast<Stream>(stream);
      const std::vector<Block> blocks = blocks_of(run, which, least_gap());
      busy = 0;
      for (const Block& block : blocks) busy += block.to - block.from;
      if (busy < kLeastBusy * length_) continue;
      y_ += kBetweenLanes;
      std::string name(name_of(which));
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

  /// Memory of the fullest stage, from the bottom: outside the allocator, allocated, reserved.
  void memory() {
    const std::size_t fullest = fullest_stage();
    const MemoryCourse& course = simulation_.memory[fullest];
    if (course.peak_reserved <= 0) return;
    const std::int64_t outside = outside_allocator(simulation_.report, fullest).value();
    const std::int64_t limit = simulation_.report.verdict.usable.value();
    const std::int64_t top = std::max(course.peak_reserved + outside, limit);
    memory_legend(course, outside, limit);
    const double floor = y_ + kMemory;
    const auto height = [&](double bytes) { return kMemory * bytes / static_cast<double>(top); };
    text(kLeft - 8, y_ + 14, "memory", "class=\"lane\"");
    if (simulation_.memory.size() > 1) {
      text(kLeft - 8, y_ + 29, fmt::format("stage {}", fullest), "class=\"small\"");
    }
    fmt::format_to(out(),
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                   "class=\"bed\"/>\n",
                   kLeft, y_, kWidth, kMemory);
    const auto area = [&](std::int64_t MemoryMoment::*field, std::string_view name) {
      std::string path = fmt::format("M{:.1f} {:.1f}", kLeft, floor);
      double drawn = -1;
      for (const MemoryMoment& moment : course.moments) {
        // The highest of what falls on one pixel would be lost by drawing only every n-th.
        if (x(moment.at) - drawn < kTooSmall && moment.allocated != course.peak_allocated) continue;
        drawn = x(moment.at);
        path += fmt::format("H{:.1f}V{:.1f}", drawn,
                            floor - height(static_cast<double>(moment.*field + outside)));
      }
      fmt::format_to(out(), "<path d=\"{}H{:.1f}V{:.1f}Z\" class=\"{}\"/>\n", path, kEnd, floor,
                     name);
    };
    if (course.peak_reserved > course.peak_allocated) area(&MemoryMoment::reserved, "reserved");
    area(&MemoryMoment::allocated, "allocated");
    if (outside > 0) {
      const double high = height(static_cast<double>(outside));
      fmt::format_to(out(),
                     "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
                     "class=\"outside\"/>\n",
                     kLeft, floor - high, kWidth, high);
    }
    const double line = floor - height(static_cast<double>(limit));
    if (limit > 0) {
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.2f}H{:.1f}\" class=\"limit\"/>\n", kLeft, line,
                     kEnd + 5);
      text(kEnd + 8, line + 4, fmt::format("usable {}", format_bytes(Bytes(limit))),
           "class=\"over\"");
    }
    for (const Tick& tick : memory_ticks(Bytes(top))) {
      const double at = floor - height(tick.value);
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.2f}h5\" class=\"axis\"/>\n", kEnd, at);
      if (limit > 0 && std::abs(at - line) < kLabelHeight) continue;
      text(kEnd + 8, at + 4, tick.label, "class=\"scale\"");
    }
    y_ = floor;
  }

  void memory_legend(const MemoryCourse& course, std::int64_t outside, std::int64_t limit) {
    double at = kLeft;
    y_ += 14;
    const auto bytes = [](std::int64_t value) { return format_bytes(Bytes(value)); };
    entry(at, "allocated, peak " + bytes(course.peak_allocated), "class=\"allocated\"");
    if (course.peak_reserved > course.peak_allocated) {
      entry(at, "reserved, peak " + bytes(course.peak_reserved), "class=\"reserved\"");
    }
    if (outside > 0) {
      entry(at, "runtime context and communicators " + bytes(outside), "class=\"outside\"");
    }
    y_ += limit > 0 ? 14 : 10;  // the limit's label may be at the top of the lane
  }

  void axis() {
    y_ += 6;
    fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"axis\"/>\n", kLeft, y_, kEnd);
    text(kLeft - 8, y_ + 18, "time", "class=\"small\"");
    for (const Tick& tick : time_ticks(Seconds(length_))) {
      const double at = x(tick.value);
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}v5\" class=\"axis\"/>\n", at, y_);
      text(at, y_ + 18, tick.label, "class=\"tick\"");
      fmt::format_to(std::back_inserter(grid_), "M{:.1f} {:.1f}V{:.1f}", at, kTop - 4, y_);
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
      if (used_[p]) entry(at, kPaints[p].name, fmt::format("fill=\"{}\"", kPaints[p].colour));
    }
    entry(at, "idle", "fill=\"url(#idle)\"");
    y_ += 4;
    if (numbered_) note("Numbers are micro-batches.");
    if (plan_.layout.vpp > 1) note("Paler blocks are later chunks of the model.");
    note(
        "Idle is the share of the step in which the compute stream runs nothing. "
        "Bubble is the share idle by schedule.");
    if (hidden_ > kLeastHidden) note("Some idle gaps are too short to be drawn.");
    const std::size_t stages = simulation_.program.stages.size();
    if (stages > kMostStages) {
      note(fmt::format("The first {} of {} stages are drawn.", kMostStages, stages));
    }
    y_ += 16;
  }

  std::string whole() const {
    const StepReport& report = simulation_.report;
    const Layout& l = plan_.layout;
    const std::string title = fmt::format("{} on {} GPUs of {}", escaped(plan_.model.name),
                                          l.world(), escaped(plan_.cluster.name));
    std::string made = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n<title>A simulated step of {2}</title>\n",
        kEnd + kRight, y_, title);
    made += kStyle;
    made += "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n";
    made += fmt::format("<path d=\"{}\" class=\"grid\"/>\n", grid_);
    made += fmt::format("<text x=\"24\" y=\"34\" class=\"title\">{}</text>\n", title);
    made += fmt::format(
        "<text x=\"24\" y=\"55\" class=\"sub\">{}, ZeRO-{}: tp {}, cp {}, pp {}{}, dp_shard {}, "
        "dp_replicate {}</text>\n",
        escaped(plan_.engine.name), int{l.zero_stage}, l.tp, l.cp, l.pp,
        l.vpp > 1 ? fmt::format(" x {} chunks", l.vpp) : "", l.dp_shard, l.dp_replicate);
    made += fmt::format(
        "<text x=\"24\" y=\"73\" class=\"sub\">{} sequences of {} tokens · a step takes {}, MFU "
        "{}</text>\n",
        format_count(plan_.job.global_batch_size), format_count(plan_.job.sequence_length),
        format_seconds(report.step_time), format_percent(report.mfu));
    return made + body_ + "</svg>\n";
  }

  const Plan& plan_;
  const Simulation& simulation_;
  std::vector<LayerTime> layers_;
  double length_;
  double y_ = kTop;
  std::array<bool, kPaints.size()> used_{};
  bool numbered_ = false;
  double hidden_ = 0;  // the most of a stage, of the step
  std::string grid_;   // path data of the lines under all lanes
  std::string body_;
};

}  // namespace

std::string timeline_svg(const Plan& plan, const Simulation& simulation) {
  return Picture(plan, simulation).draw();
}

}  // namespace shardwise::sim
