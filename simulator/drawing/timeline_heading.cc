#include "simulator/drawing/timeline_heading.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

constexpr double kTitle = 82;  // pixels that it takes

// Rules of every page, then those of a light and of a dark one. All are of the picture alone: it
// may stand in a page with styles of its own.
constexpr std::string_view kShapes =
    ".timeline text{font-family:Inter,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px}"
    ".timeline .title{font-size:17px;font-weight:600}"
    ".timeline .lane,.timeline .small,.timeline .value,.timeline .head{text-anchor:end}"
    ".timeline .lane{font-size:13px}"
    ".timeline .small,.timeline .number,.timeline .scale,.timeline .head,.timeline .over{"
    "font-size:11px}"
    ".timeline .number,.timeline .tick{text-anchor:middle}.timeline .number{pointer-events:none}"
    ".timeline .axis,.timeline .grid,.timeline .limit{fill:none}"
    ".timeline .hatch{stroke-width:2}"
    ".timeline .limit{stroke-width:1.5;stroke-dasharray:6 4}";

struct LaneColours {
  std::string_view axis, grid, bed, hatch, allocated, reserved, outside;
};
constexpr std::array<LaneColours, 2> kLanes = {{
    {"#9aa5b1", "#e4e7eb", "#f4f5f7", "#cbd2d9", "#aebfd6", "#dde3ec", "#8593a5"},
    {"#6e7681", "#272e37", "#1c222b", "#3b4450", "#5b7aa3", "#34404f", "#7d8896"},
}};

std::string colours_on(Ground ground, const TimelineColours& blocks) {
  const auto which = static_cast<std::size_t>(ground);
  const PageColours& page = kPages[which];
  const LaneColours& lanes = kLanes[which];
  return fmt::format(
             ".timeline text{{fill:{}}}.timeline .sub,.timeline .small,.timeline .tick,"
             ".timeline .scale,.timeline .head,.timeline .note{{fill:{}}}"
             ".timeline .axis{{stroke:{}}}.timeline .grid{{stroke:{}}}.timeline .page{{fill:{}}}"
             ".timeline .bed{{fill:{}}}.timeline .hatch{{stroke:{}}}"
             ".timeline .allocated{{fill:{}}}.timeline .reserved{{fill:{}}}"
             ".timeline .outside{{fill:{}}}.timeline .limit{{stroke:{}}}.timeline .over{{fill:{}}}",
             page.text, page.quiet, lanes.axis, lanes.grid, kGrounds[which], lanes.bed, lanes.hatch,
             lanes.allocated, lanes.reserved, lanes.outside, page.bad, page.bad) +
         blocks.styles(ground);
}

/// The styles, and the hatch of idle time. Paper is light.
std::string styles(const TimelineColours& blocks) {
  return fmt::format(
      "<style>{}{}\n@media screen and (prefers-color-scheme:dark){{{}}}</style>\n"
      "<defs><pattern id=\"idle\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"bed\"/>"
      "<path d=\"M0 0V6\" class=\"hatch\"/></pattern></defs>\n",
      kShapes, colours_on(Ground::light, blocks), colours_on(Ground::dark, blocks));
}

}  // namespace

std::string degrees(const Layout& l) {
  std::string text = fmt::format("tp {}, cp {}, pp {}", l.tp, l.cp, l.pp);
  if (l.pp > 1 && l.vpp > 1) text += fmt::format(" x {} chunks", l.vpp);
  if (l.pp > 1) text += fmt::format(" by {}", name_of(l.schedule));
  if (l.ep > 1) text += fmt::format(", ep {}", l.ep);
  return text + fmt::format(", dp_shard {}, dp_replicate {}", l.dp_shard, l.dp_replicate);
}

std::string timeline_heading(const Plan& plan, const StepReport& report, TimelineTitle title,
                             const TimelineColours& colours, double width, double height) {
  const std::string subject = fmt::format("{} on {} GPUs of {}", escaped(plan.model.name),
                                          plan.layout.world(), escaped(plan.cluster.name));
  const bool above = title == TimelineTitle::above;
  const double top = above ? 0 : kTitle;
  std::string made = fmt::format(
      "<svg class=\"timeline\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
      "height=\"{2:.0f}\" viewBox=\"0 {1:.0f} {0:.0f} {2:.0f}\" role=\"img\">\n"
      "<title>A simulated step of {3}</title>\n",
      width, top, height - top, subject);
  made += styles(colours);
  if (!above) return made;
  made += "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n";
  made += fmt::format("<text x=\"24\" y=\"34\" class=\"title\">{}</text>\n", subject);
  made += fmt::format("<text x=\"24\" y=\"55\" class=\"sub\">{}, ZeRO-{}: {}</text>\n",
                      escaped(plan.engine.name), int{plan.layout.zero_stage}, degrees(plan.layout));
  return made +
         fmt::format(
             "<text x=\"24\" y=\"73\" class=\"sub\">{} sequences of {} tokens · a step takes {}, "
             "MFU {}</text>\n",
             format_count(plan.job.global_batch_size), format_count(plan.job.sequence_length),
             format_seconds(report.step_time), format_percent(report.mfu));
}

}  // namespace shardwise::sim
