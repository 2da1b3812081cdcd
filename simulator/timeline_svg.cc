#include "simulator/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include "planner/spec/format.h"
#include "simulator/stage_summary.h"
#include "simulator/step_report.h"
#include "simulator/timeline_blocks.h"

namespace shardwise::sim {
namespace {

// All in pixels.
constexpr double kLeft = 118;  // of the lanes; their names are before it
constexpr double kWidth = 1042;
constexpr double kRight = 40;
constexpr double kTop = 74;
constexpr double kComputeLane = 30;
constexpr double kOtherLane = 13;
constexpr double kBetweenLanes = 3;
constexpr double kBetweenStages = 12;
constexpr double kMemory = 64;
constexpr double kTooSmall = 0.4;    // gaps and blocks narrower than this are not drawn apart
constexpr double kNumberWidth = 13;  // blocks at least as wide carry their micro-batch
constexpr std::size_t kMostStages = 16;
constexpr std::size_t kMostDetailedStages = 4;
constexpr double kLeastBusy = 0.01;  // of the step: streams that do less get no lane

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
      : plan_(plan), simulation_(simulation), length_(simulation.timeline.length()) {}

  std::string draw() {
    const std::size_t stages = simulation_.program.stages.size();
    const std::size_t drawn = std::min(stages, kMostStages);
    for (std::size_t s = 0; s < drawn; ++s) stage(s, drawn <= kMostDetailedStages);
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
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                   "fill=\"{}\"/>\n",
                   kLeft, y_, kWidth, height, numbers ? "url(#idle)" : "#f4f5f7");
    for (const Block& block : blocks) {
      const double from = x(block.from);
      const double width = x(block.to) - from;
      if (width < kTooSmall / 2) continue;
      used_[static_cast<std::size_t>(block.paint)] = true;
      // Later chunks of the model a little paler, so that an interleaved schedule can be read.
      const double opacity = std::max(0.55, 1 - 0.2 * block.chunk);
      const bool seam = numbers && width > 3;
      fmt::format_to(out(),
                     "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
                     "fill=\"{}\"{}{}/>\n",
                     from, y_, std::max(width, kTooSmall), height,
                     kPaints[static_cast<std::size_t>(block.paint)].colour,
                     opacity < 1 ? fmt::format(" fill-opacity=\"{:.2f}\"", opacity) : "",
                     seam ? " stroke=\"#ffffff\" stroke-width=\"0.6\"" : "");
      const bool passes = block.paint == Paint::forward || block.paint == Paint::backward ||
                          block.paint == Paint::weight || block.paint == Paint::recompute;
      if (numbers && simulation_.program.num_microbatches > 1 && passes && block.microbatch >= 0 &&
          width >= kNumberWidth) {
        text(from + width / 2, y_ + height / 2 + 3.5, fmt::format("{}", block.microbatch),
             "class=\"number\"");
      }
    }
  }

  void stage(std::size_t s, bool detailed) {
    const StageRunTimes run = run_times(simulation_, s);
    const bool alone = simulation_.program.stages.size() == 1;
    text(kLeft - 8, y_ + kComputeLane / 2 + 4, alone ? "compute" : fmt::format("stage {}", s),
         "class=\"lane\"");
    lane(blocks_of(run, Stream::compute, least_gap()), kComputeLane, true);
    y_ += kComputeLane;
    for (std::size_t stream = 1; detailed && stream < kStreams; ++stream) {
      const auto which = static_cast<Stream>(stream);
      const std::vector<Block> blocks = blocks_of(run, which, least_gap());
      double busy = 0;
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

  /// Bytes allocated on the stage that needs most.
  void memory() {
    std::size_t fullest = 0;
    for (std::size_t s = 0; s < simulation_.memory.size(); ++s) {
      if (simulation_.memory[s].peak_allocated > simulation_.memory[fullest].peak_allocated) {
        fullest = s;
      }
    }
    const MemoryCourse& course = simulation_.memory[fullest];
    const auto most = static_cast<double>(course.peak_reserved);
    if (most <= 0) return;
    const bool alone = simulation_.memory.size() == 1;
    text(kLeft, y_ + 14,
         fmt::format("allocated, at most {}, of what is reserved, at most {}",
                     format_bytes(Bytes(course.peak_allocated)),
                     format_bytes(Bytes(course.peak_reserved))),
         "class=\"note\"");
    y_ += 20;
    const double floor = y_ + kMemory;
    text(kLeft - 8, y_ + 14, "memory", "class=\"lane\"");
    if (!alone) text(kLeft - 8, y_ + 29, fmt::format("stage {}", fullest), "class=\"small\"");
    const auto course_of = [&](std::int64_t MemoryMoment::*field) {
      std::string path = fmt::format("M{:.1f} {:.1f}", kLeft, floor);
      double drawn = -1;
      for (const MemoryMoment& moment : course.moments) {
        const double height = kMemory * static_cast<double>(moment.*field) / most;
        // The highest of what falls on one pixel would be lost by drawing only every n-th.
        if (x(moment.at) - drawn >= kTooSmall || moment.allocated == course.peak_allocated) {
          drawn = x(moment.at);
          path += fmt::format("H{:.1f}V{:.1f}", drawn, floor - height);
        }
      }
      return path + fmt::format("H{:.1f}V{:.1f}Z", kLeft + kWidth, floor);
    };
    fmt::format_to(out(), "<path d=\"{}\" fill=\"#eceef2\"/>\n",
                   course_of(&MemoryMoment::reserved));
    fmt::format_to(out(), "<path d=\"{}\" fill=\"#aebfd6\"/>\n",
                   course_of(&MemoryMoment::allocated));
    y_ = floor;
  }

  void axis() {
    // The largest of 1, 2, 5 x 10^n that gives at least six ticks.
    double step = std::pow(10, std::floor(std::log10(length_)));
    for (const double smaller : {1.0, 0.5, 0.2, 0.1}) {
      if (length_ / (step * smaller) < 6) continue;
      step *= smaller;
      break;
    }
    y_ += 6;
    fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"axis\"/>\n", kLeft, y_,
                   kLeft + kWidth);
    for (int i = 0; i * step <= length_ * (1 + 1e-9); ++i) {
      const double at = x(i * step);
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f}v5\" class=\"axis\"/>\n", at, y_);
      text(at, y_ + 18, i == 0 ? "0" : format_seconds(Seconds(i * step)), "class=\"tick\"");
    }
    y_ += 24;
  }

  void legend() {
    double at = kLeft;
    double line = y_ + 22;
    const auto entry = [&](std::string_view name, std::string_view fill) {
      const double width = 36 + 6.6 * static_cast<double>(name.size());
      if (at + width > kLeft + kWidth) {
        at = kLeft;
        line += 20;
      }
      fmt::format_to(out(),
                     "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"11\" rx=\"2\" "
                     "fill=\"{}\"/>\n",
                     at, line - 10, fill);
      text(at + 19, line, name, "class=\"key\"");
      at += width;
    };
    for (std::size_t p = 0; p < kPaints.size(); ++p) {
      if (used_[p]) entry(kPaints[p].name, kPaints[p].colour);
    }
    entry("idle", "url(#idle)");
    std::string note;
    if (simulation_.program.num_microbatches > 1) note = "numbers are micro-batches";
    if (plan_.layout.vpp > 1) note += ", paler blocks later chunks of the model";
    text(kLeft, line + 20, note, "class=\"note\"");
    y_ = line + 34;
  }

  std::string whole() const {
    const StepReport& report = simulation_.report;
    const double width = kLeft + kWidth + kRight;
    std::string made = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
        width, y_);
    made +=
        "<style>text{font-family:Inter,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2933}"
        ".title{font-size:17px;font-weight:600}.sub{font-size:12.5px;fill:#52606d}"
        ".lane{font-size:12.5px;text-anchor:end}.small{font-size:10px;text-anchor:end;"
        "fill:#616e7c}.number{font-size:10px;text-anchor:middle;fill:#fff}"
        ".tick{font-size:11px;text-anchor:middle;fill:#52606d}.key{font-size:12px}"
        ".note{font-size:11px;fill:#52606d}.axis{stroke:#9aa5b1;fill:none}</style>\n"
        "<defs><pattern id=\"idle\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f4f5f7\"/>"
        "<path d=\"M0 0V6\" stroke=\"#d3d8de\" stroke-width=\"2\"/></pattern></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    const Layout& l = plan_.layout;
    made += fmt::format("<text x=\"24\" y=\"34\" class=\"title\">{} on {} GPUs of {}</text>\n",
                        escaped(plan_.model.name), l.world(), escaped(plan_.cluster.name));
    made += fmt::format(
        "<text x=\"24\" y=\"54\" class=\"sub\">{}, ZeRO-{}: tp {}, cp {}, pp {}{}, dp_shard {}, "
        "dp_replicate {} · {} sequences of {} tokens · a step takes {}, MFU {}</text>\n",
        escaped(plan_.engine.name), int{l.zero_stage}, l.tp, l.cp, l.pp,
        l.vpp > 1 ? fmt::format(" x {} chunks", l.vpp) : "", l.dp_shard, l.dp_replicate,
        format_count(plan_.job.global_batch_size), format_count(plan_.job.sequence_length),
        format_seconds(report.step_time), format_percent(report.mfu));
    return made + body_ + "</svg>\n";
  }

  const Plan& plan_;
  const Simulation& simulation_;
  double length_;
  double y_ = kTop;
  std::array<bool, kPaints.size()> used_{};
  std::string body_;
};

}  // namespace

std::string timeline_svg(const Plan& plan, const Simulation& simulation) {
  return Picture(plan, simulation).draw();
}

}  // namespace shardwise::sim
