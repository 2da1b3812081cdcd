#include "answers/html/page_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "answers/html/assets.h"
#include "planner/spec/text/sha256.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/palette.h"

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

}  // namespace

std::string page_head(std::string_view title, std::string_view version, std::string_view script) {
  const std::string runs =
      script.empty() ? "" : fmt::format("script-src 'sha256-{}'; ", base64(sha256_bytes(script)));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; {}img-src data:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"shardwise {}\">\n<title>{}</title>\n{}</head>\n",
      runs, escaped(version), escaped(title), style());
}

}  // namespace shardwise::sim
