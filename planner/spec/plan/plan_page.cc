#include "planner/spec/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardwise {
namespace {

constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"plan\">";
constexpr std::string_view kEnd = "</script>";
constexpr const char* kHint = "shardwise report writes a page with its plan in it";

std::size_t lines_before(std::string_view text, std::size_t at) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

/// The character at the begin of a text that turns the direction of what follows it, so that a page
/// reads as it is not; 0 where there is none. All of them have three bytes.
/// Source: The Unicode Standard, section 23.3 (directional formatting characters).
unsigned turns_text(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xE2') return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) & 0x3FU; };
  const unsigned character = 0x2000U | (byte(1) << 6U) | byte(2);
  const bool marks = character == 0x200E || character == 0x200F;
  const bool embeds = character >= 0x202A && character <= 0x202E;
  const bool isolates = character >= 0x2066 && character <= 0x2069;
  return marks || embeds || isolates ? character : 0;
}

/// What may be wrong with a page that has no plan.
const char* without_plan(std::string_view page) {
  const bool whole = page.find("</html>") != std::string_view::npos;
  return whole ? kHint : "is the file complete? shardwise report writes a page with its plan in it";
}

}  // namespace

std::string json_element(std::string_view id, std::string_view json) {
  std::string element = fmt::format("<script type=\"application/json\" id=\"{}\">\n", id);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      element += "\\u003c";
    } else if (const unsigned turning = turns_text(json.substr(i))) {
      element += fmt::format("\\u{:04x}", turning);
      i += 2;
    } else {
      element += json[i];
    }
  }
  return element.append(kEnd);
}

std::string plan_element(const Plan& plan) { return json_element("plan", to_json(plan)); }

bool is_page(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && text[first] == '<';
}

Result<std::string> plan_in_page(std::string_view page, const std::string& file) {
  if (page.size() > kMostPageBytes) {
    return Diagnostic{
        file,
        0,
        0,
        "",
        fmt::format("a page of {} bytes, but a report has at most {}", page.size(), kMostPageBytes),
        kHint};
  }
  const std::size_t marker = page.find(kBegin);
  if (marker == std::string_view::npos) {
    return Diagnostic{file, 0, 0, "", "a page without a plan", without_plan(page)};
  }
  const std::size_t begin = marker + kBegin.size();
  if (const std::size_t again = page.find(kBegin, begin); again != std::string_view::npos) {
    return Diagnostic{
        file, static_cast<int>(lines_before(page, again) + 1), 0, "", "a second plan in one page",
        kHint};
  }
  const std::size_t end = page.find(kEnd, begin);
  if (end == std::string_view::npos) {
    return Diagnostic{file,
                      static_cast<int>(lines_before(page, begin) + 1),
                      0,
                      "",
                      "the page ends inside its plan",
                      "is the file complete?"};
  }
  std::string text(lines_before(page, begin), '\n');
  return text.append(page.substr(begin, end - begin));
}

}  // namespace shardwise
