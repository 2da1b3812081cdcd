#include "answers/html/report_page.h"

#include <fmt/format.h>

#include <array>

#include "answers/html/assets.h"
#include "answers/html/html_table.h"
#include "planner/spec/plan/plan_page.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/sha256.h"
#include "simulator/comparison/verdict_words.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/palette.h"
#include "simulator/drawing/timeline_heading.h"

namespace shardwise::sim {
namespace {

/// Source: RFC 4648, section 4.
std::string base64(const std::array<std::uint8_t, 32>& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = (group << 8) | (k < have ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= have ? kDigits[(group >> (18 - 6 * k)) & 63U] : '=';
    }
  }
  return text;
}

/// Colours of a page as variables of the style.
std::string colours(Ground ground) {
  const auto which = static_cast<std::size_t>(ground);
  const PageColours& page = kPages[which];
  std::string rules = fmt::format(
      "--ground:{};--panel:{};--text:{};--quiet:{};--line:{};--good:{};--warning:{};--bad:{};"
      "--link:{};",
      kGrounds[which], page.panel, page.text, page.quiet, page.line, page.good, page.warning,
      page.bad, page.link);
  for (std::size_t p = 0; p < kPaints.size(); ++p) {
    rules += fmt::format("--p{}:{};", p, shade(static_cast<Paint>(p), 0, ground));
  }
  return rules;
}

std::string style() {
  std::string rules = fmt::format(
      ":root{{color-scheme:light dark;{}}}\n@media screen and "
      "(prefers-color-scheme:dark){{:root{{{}}}}}\n",
      colours(Ground::light), colours(Ground::dark));
  for (std::size_t p = 0; p < kPaints.size(); ++p) {
    rules += fmt::format(".p{0}{{background:var(--p{0})}}", p);
  }
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    rules +=
        fmt::format(".g{}{{background:var(--p{})}}", g, static_cast<std::size_t>(kGroupPaints[g]));
  }
  return "<style>" + rules + "\n" + std::string(report_style()) + "</style>\n";
}

std::string head(const PageContent& page, const std::string& title) {
  const std::string hash = base64(sha256_bytes(report_script()));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"shardwise {}\">\n<title>{}</title>\n{}</head>\n",
      hash, escaped(page.version), escaped(title), style());
}

std::string heading(const PageContent& page, const std::string& title) {
  const Plan& plan = *page.plan;
  const StepReport& report = page.report();
  return fmt::format(
      "<header>\n<h1>{}</h1>\n<p>{}, ZeRO-{}: {}</p>\n<p>{} sequences of {} tokens a step</p>\n"
      "<p class=\"verdict {}\">{}</p>\n</header>\n",
      escaped(title), escaped(plan.engine.name), int{plan.layout.zero_stage}, degrees(plan.layout),
      format_count(plan.job.global_batch_size), format_count(plan.job.sequence_length),
      tone_class(tone_of(report.verdict.fit)), escaped(verdict_words(report)));
}

std::string footer(const PageContent& page) {
  return fmt::format(
      "<footer>\n<p>Make it again: <code>{}</code></p>\n"
      "<p>This file is also the plan: <code>shardwise simulate</code> and <code>shardwise "
      "run</code> "
      "take it in place of a plan.json.</p>\n"
      "<p>Plan {} (SHA-256) · shardwise {}</p>\n</footer>\n",
      escaped(page.command), plan_digest_element(*page.plan), escaped(page.version));
}

}  // namespace

std::string report_page(const PageContent& page) {
  const Plan& plan = *page.plan;
  const std::string title =
      fmt::format("{} on {} GPU{} of {}", plan.model.name, format_count(plan.layout.world()),
                  plan.layout.world() == 1 ? "" : "s", plan.cluster.name);
  std::string made = head(page, title) + "<body>\n<main>\n" + heading(page, title);
  for (const auto& part :
       {tiles_section, step_section, memory_section, time_section, measured_section, trace_section,
        layouts_section, front_section, why_not_section, reasons_section}) {
    made += part(page);
  }
  made += footer(page) + "</main>\n" + plan_element(plan) + "\n<script>" +
          std::string(report_script()) + "</script>\n</body>\n</html>\n";
  return made;
}

}  // namespace shardwise::sim
