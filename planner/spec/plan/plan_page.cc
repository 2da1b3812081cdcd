#include "planner/spec/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/plan/page_elements.h"
#include "planner/spec/text/sha256.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"plan\">";
constexpr std::string_view kPlanId = "plan";
constexpr std::string_view kDigestId = "plan-sha256";
constexpr std::string_view kPageDigestId = "page-sha256";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kEscapedLess = "\\u003c";
constexpr std::size_t kEscapeBytes = 6;
constexpr const char* kHint = "shardwise report writes a page with its plan in it";
constexpr const char* kOriginal = "give the plan.json, or the page as shardwise report wrote it";

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

/// The character whose escape of json_element() a text begins with; empty where it does not.
std::string escaped_character(std::string_view text) {
  if (text.starts_with(kEscapedLess)) return "<";
  if (text.size() < kEscapeBytes || !text.starts_with("\\u2")) return "";
  unsigned number = 0;
  const char* const end = text.data() + kEscapeBytes;
  if (std::from_chars(text.data() + 2, end, number, 16).ptr != end) return "";
  const std::string character = {'\xE2', static_cast<char>(0x80U | (number >> 6U & 0x3FU)),
                                 static_cast<char>(0x80U | (number & 0x3FU))};
  return turns_text(character) == number ? character : "";
}

/// The text that json_element() was given, whatever line ends a program gave the page since.
std::string unescaped_json(std::string_view text) {
  std::string json;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("\r\n") || (json.empty() && rest[0] == '\n')) continue;
    if (rest[0] != '\\') {
      json += rest[0];
    } else if (const std::string character = escaped_character(rest); !character.empty()) {
      json += character;
      i += kEscapeBytes - 1;
    } else {
      json += rest.substr(0, 2);  // an escaped backslash begins no escape
      ++i;
    }
  }
  return json;
}

Diagnostic page_problem(const std::string& file, std::string_view page, std::size_t at,
                        std::string what, const char* hint) {
  return {file, static_cast<int>(lines_before(page, at) + 1), 0, "", std::move(what), hint};
}

/// What is wrong with a page that has no plan.
Diagnostic without_plan(const std::string& file, std::string_view page) {
  const std::size_t hidden = page.find(kBegin);
  if (hidden != std::string_view::npos) {
    return page_problem(file, page, hidden,
                        "a page without a plan: this one is inside a comment or another element",
                        kHint);
  }
  const bool whole = page.find("</html>") != std::string_view::npos;
  return {
      file,
      0,
      0,
      "",
      "a page without a plan",
      whole ? kHint : "is the file complete? shardwise report writes a page with its plan in it"};
}

bool is_plan(const PageElement& element) {
  return element.name == "script" && element.id == kPlanId &&
         std::ranges::equal(element.type, kJsonType, {}, [](char c) {
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

/// What is wrong where the page shows no digest, or that of another plan than the one it holds.
std::optional<Diagnostic> untied_plan(const std::string& file, std::string_view page,
                                      const PageElement& plan,
                                      const std::vector<PageElement>& elements) {
  const std::string held = sha256(unescaped_json(plan.text));
  bool tied = false;
  for (const PageElement& each : elements) {
    if (each.id != kDigestId) continue;
    tied = true;
    if (each.text == held) continue;
    return page_problem(file, page, plan.begin,
                        fmt::format("the plan was changed: its SHA-256 is {}, but the page shows "
                                    "the plan {}",
                                    held, shown(each.text, held.size())),
                        kOriginal);
  }
  if (tied) return std::nullopt;
  return page_problem(file, page, plan.begin,
                      "the page shows no digest of its plan, so nothing ties what it shows to it",
                      kOriginal);
}

/// The SHA-256 of a page but for a part of it, as it was before a program gave it a byte-order mark
/// or other line ends.
std::string digest_without(std::string_view page, std::string_view part) {
  const auto begin = static_cast<std::size_t>(part.data() - page.data());
  std::string rest;
  rest.reserve(page.size());
  const auto add = [&rest](std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!bytes.substr(i).starts_with("\r\n")) rest += bytes[i];
    }
  };
  const std::size_t first = page.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  add(page.substr(first, begin - first));
  add(page.substr(begin + part.size()));
  return sha256(rest);
}

/// What is wrong where the page shows no digest of itself, or that of another page.
std::optional<Diagnostic> altered_page(const std::string& file, std::string_view page,
                                       const PageElement& plan,
                                       const std::vector<PageElement>& elements) {
  const auto shows = [](const PageElement& each) { return each.id == kPageDigestId; };
  const auto found = std::ranges::find_if(elements, shows);
  if (found == elements.end()) {
    return page_problem(file, page, plan.begin,
                        "the page shows no digest of itself, so nothing ties what it shows to its "
                        "plan",
                        kOriginal);
  }
  const auto again = std::find_if(found + 1, elements.end(), shows);
  if (again != elements.end()) {
    return page_problem(file, page, again->begin, "a second digest of one page", kOriginal);
  }
  const std::string held = digest_without(page, found->text);
  if (found->text == held) return std::nullopt;
  return page_problem(file, page, found->begin,
                      fmt::format("the page was changed: its SHA-256 is {}, but it shows {}", held,
                                  shown(found->text, held.size())),
                      kOriginal);
}

}  // namespace

std::string json_element(std::string_view id, std::string_view json) {
  std::string element = fmt::format("<script type=\"application/json\" id=\"{}\">\n", id);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      element += kEscapedLess;
    } else if (const unsigned turning = turns_text(json.substr(i))) {
      element += fmt::format("\\u{:04x}", turning);
      i += 2;
    } else {
      element += json[i];
    }
  }
  return element.append("</script>");
}

std::string plan_element(const Plan& plan) { return json_element(kPlanId, to_json(plan)); }

std::string plan_digest_element(const Plan& plan) {
  return fmt::format("<code id=\"{}\">{}</code>", kDigestId, digest(plan));
}

std::string with_page_digest(std::string page) {
  for (const PageElement& each : elements_with_id(page)) {
    if (each.id != kPageDigestId) continue;
    const std::string digest = digest_without(page, each.text);
    page.replace(static_cast<std::size_t>(each.text.data() - page.data()), each.text.size(),
                 digest);
    break;
  }
  return page;
}

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
  const std::vector<PageElement> elements = elements_with_id(page);
  const auto plan = std::ranges::find_if(elements, is_plan);
  if (plan == elements.end()) return without_plan(file, page);
  const auto again = std::find_if(plan + 1, elements.end(), is_plan);
  if (again != elements.end()) {
    return page_problem(file, page, again->begin, "a second plan in one page", kHint);
  }
  if (!plan->ended) {
    return page_problem(file, page, plan->begin, "the page ends inside its plan",
                        "is the file complete?");
  }
  if (std::optional<Diagnostic> problem = untied_plan(file, page, *plan, elements)) {
    return *std::move(problem);
  }
  if (std::optional<Diagnostic> problem = altered_page(file, page, *plan, elements)) {
    return *std::move(problem);
  }
  const auto begin = static_cast<std::size_t>(plan->text.data() - page.data());
  return std::string(lines_before(page, begin), '\n').append(plan->text);
}

}  // namespace shardwise
