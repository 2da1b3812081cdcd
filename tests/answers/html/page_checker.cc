#include "tests/answers/html/page_checker.h"

#include <array>
#include <cctype>
#include <set>
#include <utility>

namespace shardwise::test {
namespace {

constexpr std::array<std::string_view, 3> kVoid = {"meta", "br", "input"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEntities = {
    {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}}};

template <std::size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  for (const std::string_view each : names) {
    if (each == name) return true;
  }
  return false;
}

}  // namespace

std::string PageElement::attribute(std::string_view key) const {
  const std::string begin = " " + std::string(key) + "=\"";
  const std::size_t at = attributes.find(begin);
  if (at == std::string::npos) return "";
  const std::size_t from = at + begin.size();
  return attributes.substr(from, attributes.find('"', from) - from);
}

Page::Page(std::string_view text) {
  std::vector<std::size_t> open;  // indices of elements_
  const auto wrong = [&](std::size_t at, const std::string& what) {
    mistakes_.push_back(what + " at: " + std::string(text.substr(at, 60)));
  };
  const auto say = [&](std::string_view words) {
    for (const std::size_t each : open) elements_[each].text += words;
  };
  constexpr std::string_view kDoctype = "<!doctype html>\n";
  if (!text.starts_with(kDoctype)) wrong(0, "no doctype");
  std::size_t at = kDoctype.size();
  while (at < text.size() && mistakes_.size() < 10) {
    const char c = text[at];
    if (c == '&') {
      bool known = false;
      for (const auto& [entity, meaning] : kEntities) {
        if (!text.substr(at).starts_with(entity)) continue;
        known = true;
        say(meaning);
        at += entity.size();
        break;
      }
      if (!known) wrong(at++, "an unknown entity");
      continue;
    }
    if (c == '>') wrong(at, "a bare >");
    if (c != '<') {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 && c != '\n') wrong(at, "a control character");
      say(text.substr(at++, 1));
      continue;
    }
    std::size_t to = at + 1;
    const bool closes = text.substr(to).starts_with("/");
    if (closes) ++to;
    const std::size_t name_begin = to;
    while (to < text.size() && std::isalnum(static_cast<unsigned char>(text[to])) != 0) ++to;
    const std::string name(text.substr(name_begin, to - name_begin));
    if (name.empty()) {
      wrong(at++, "a bare <");
      continue;
    }
    const std::size_t attributes_begin = to;
    std::set<std::string> keys;
    bool whole = true;
    while (whole && to < text.size() && text[to] == ' ') {
      const std::size_t key_begin = ++to;
      while (to < text.size() && (std::isalnum(static_cast<unsigned char>(text[to])) != 0 ||
                                  text[to] == '-' || text[to] == ':')) {
        ++to;
      }
      if (!keys.insert(std::string(text.substr(key_begin, to - key_begin))).second) {
        wrong(at, "an attribute twice");
      }
      if (to < text.size() && text[to] == '>') break;  // without a value: hidden
      whole = text.substr(to).starts_with("=\"");
      if (!whole) break;
      const std::size_t end = text.find('"', to + 2);
      whole = end != std::string_view::npos;
      if (!whole) break;
      if (text.substr(to + 2, end - to - 2).find('<') != std::string_view::npos) {
        wrong(at, "a < in an attribute");
      }
      to = end + 1;
    }
    const std::string attributes(text.substr(attributes_begin, to - attributes_begin));
    const bool empty = text.substr(to).starts_with("/>");
    if (empty) ++to;
    if (!whole || to >= text.size() || text[to] != '>') {
      wrong(at++, "a tag that does not end");
      continue;
    }
    ++to;
    if (closes) {
      if (open.empty() || elements_[open.back()].name != name) {
        wrong(at,
              "</" + name + "> closes " + (open.empty() ? "nothing" : elements_[open.back()].name));
      } else {
        open.pop_back();
      }
      at = to;
      continue;
    }
    elements_.push_back({name, attributes, ""});
    if (!empty && !is_one_of(kVoid, name)) open.push_back(elements_.size() - 1);
    if (name == "script" || name == "style") {  // their text is not markup
      const std::size_t end = text.find("</" + name, to);
      if (end == std::string_view::npos) {
        wrong(at, "a " + name + " without end");
        break;
      }
      elements_.back().text = text.substr(to, end - to);
      to = end;
    }
    at = to;
  }
  for (const std::size_t each : open) mistakes_.push_back(elements_[each].name + " is not closed");
}

std::vector<PageElement> Page::all(std::string_view name, std::string_view having) const {
  std::vector<PageElement> found;
  for (const PageElement& each : elements_) {
    const bool has = having.empty() || each.attributes.find(having) != std::string::npos;
    if (each.name == name && has) found.push_back(each);
  }
  return found;
}

}  // namespace shardwise::test
