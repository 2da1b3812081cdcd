#include "planner/spec/plan_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardwise {
namespace {

constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"plan\">\n";
constexpr std::string_view kEnd = "</script>";
constexpr const char* kHint = "shardwise report writes a page with its plan in it";

std::size_t lines_before(std::string_view text, std::size_t at) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

}  // namespace

std::string plan_element(const Plan& plan) {
  std::string element(kBegin);
  for (const char c : to_json(plan)) {
    if (c == '<') {
      element += "\\u003c";
    } else {
      element += c;
    }
  }
  return element.append(kEnd);
}

bool is_page(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
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
    return Diagnostic{file, 0, 0, "", "a page without a plan", kHint};
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
