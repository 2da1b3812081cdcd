#include "answers/html/report_page.h"

#include <fmt/format.h>

#include <utility>

#include "answers/html/assets.h"
#include "answers/html/html_table.h"
#include "answers/html/page_head.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/estimate/interval_table.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/report/interval_words.h"
#include "planner/spec/report/verdict_words.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/timeline_heading.h"

namespace shardwise::sim {
namespace {

/// What the GPUs cost; nothing where that is not known.
std::string price_words(const Plan& plan) {
  const std::optional<double> price = gpu_hour_price(plan.cluster);
  if (!price) return "";
  const std::int64_t gpus = plan.layout.world();
  const std::string& source =
      plan.cluster.price_per_gpu_hour ? plan.cluster.price_source : plan.cluster.gpu.price_source;
  return fmt::format(
      "<p>{} an hour for a GPU{}{}</p>\n", format_dollars(*price),
      gpus > 1 ? fmt::format(", {} for all {}", format_dollars(*price * static_cast<double>(gpus)),
                             format_count(gpus))
               : "",
      source.empty() ? "" : fmt::format(" <small>{}</small>", escaped(source)));
}

std::string heading(const PageContent& page, const std::string& title) {
  const Plan& plan = *page.plan;
  const StepReport& report = page.report();
  return fmt::format(
      "<header>\n<h1>{}</h1>\n<p>{}, ZeRO-{}: {}</p>\n<p>{} sequences of {} tokens a step</p>\n"
      "{}<p class=\"verdict {}\">{}</p>\n<p>{}</p>\n</header>\n",
      escaped(title), escaped(plan.engine.name), int{plan.layout.zero_stage}, degrees(plan.layout),
      format_count(plan.job.global_batch_size), format_count(plan.job.sequence_length),
      price_words(plan), tone_class(tone_of(report.verdict.fit)), escaped(verdict_words(report)),
      escaped(intervals_line(report, report_intervals(plan.engine, plan.cluster))));
}

std::string footer(const PageContent& page) {
  return fmt::format(
      "<footer>\n{}<p>Make it again: <code>{}</code></p>\n"
      "<p>This file is also the plan: <code>shardwise simulate</code> and <code>shardwise "
      "run</code> "
      "take it in place of a plan.json.</p>\n"
      "<p>Plan {} (SHA-256) · this page {} · shardwise {}</p>\n</footer>\n",
      page.date.empty() ? "" : fmt::format("<p>Made {}</p>\n", escaped(page.date)),
      escaped(page.command), plan_digest_element(*page.plan), kPageDigestElement,
      escaped(page.version));
}

}  // namespace

std::string report_page(const PageContent& page) {
  const Plan& plan = *page.plan;
  const std::string title =
      fmt::format("{} on {} GPU{} of {}", plan.model.name, format_count(plan.layout.world()),
                  plan.layout.world() == 1 ? "" : "s", plan.cluster.name);
  std::string made =
      page_head(title, page.version, report_script()) + "<body>\n<main>\n" + heading(page, title);
  for (const auto& part : {tiles_section, step_section, memory_section, time_section,
                           measured_section, trace_section, layouts_section, front_section,
                           why_not_section, levers_section, published_section, reasons_section}) {
    made += part(page);
  }
  made += footer(page) + "</main>\n" + plan_element(plan) + "\n<script>" +
          std::string(report_script()) + "</script>\n</body>\n</html>\n";
  return with_page_digest(std::move(made));
}

}  // namespace shardwise::sim
