#include "simulator/timeline_heading.h"

#include <fmt/format.h>

#include <string_view>

#include "planner/spec/format.h"
#include "planner/spec/names.h"

namespace shardwise::sim {
namespace {

// Styles of the picture, and the hatch of idle time. The second half holds for a reader whose
// system is set to dark.
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

/// "tp 2, cp 1, pp 8 x 2 chunks by one_f_one_b, dp_shard 4, dp_replicate 1".
std::string degrees(const Layout& l) {
  std::string text = fmt::format("tp {}, cp {}, pp {}", l.tp, l.cp, l.pp);
  if (l.pp > 1 && l.vpp > 1) text += fmt::format(" x {} chunks", l.vpp);
  if (l.pp > 1) text += fmt::format(" by {}", name_of(l.schedule));
  if (l.ep > 1) text += fmt::format(", ep {}", l.ep);
  return text + fmt::format(", dp_shard {}, dp_replicate {}", l.dp_shard, l.dp_replicate);
}

}  // namespace

std::string timeline_heading(const Plan& plan, const StepReport& report, double width,
                             double height) {
  const std::string title = fmt::format("{} on {} GPUs of {}", escaped(plan.model.name),
                                        plan.layout.world(), escaped(plan.cluster.name));
  std::string made = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n<title>A simulated step of {2}</title>\n",
      width, height, title);
  made += kStyle;
  made += "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n";
  made += fmt::format("<text x=\"24\" y=\"34\" class=\"title\">{}</text>\n", title);
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
