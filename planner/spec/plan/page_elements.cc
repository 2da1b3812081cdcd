#include "planner/spec/plan/page_elements.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardwise {
namespace {

/// Elements whose content a browser takes for text up to their end tag.
constexpr std::array<std::string_view, 9> kTextElements = {
    "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), lower);
  return lowered;
}

class PageScan {
 public:
  explicit PageScan(std::string_view page) : page_(page) {}

  std::vector<PageElement> elements() && {
    while (at_ < page_.size()) {
      at_ = std::min(page_.find('<', at_), page_.size());
      if (has("<!--")) {
        pass_comment();
      } else if (has("<![CDATA[")) {
        pass("]]>", at_);
      } else if (is_letter(after(1))) {
        start_tag();
      } else if (after(1) == '/' && is_letter(after(2))) {
        end_tag();
      } else if (after(1) == '!' || after(1) == '?' || after(1) == '/') {
        pass(">", at_);
      } else {
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  char after(std::size_t count) const {
    return at_ + count < page_.size() ? page_[at_ + count] : '\0';
  }
  bool has(std::string_view text) const { return page_.substr(at_).starts_with(text); }
  /// Goes behind the next `end`, or to the page's end.
  void pass(std::string_view end, std::size_t from) {
    const std::size_t found = page_.find(end, from);
    at_ = found == std::string_view::npos ? page_.size() : found + end.size();
  }
  /// A comment also ends at --!>, and at once where it begins with > or ->.
  void pass_comment() {
    at_ += 4;
    if (has(">") || has("->")) return pass(">", at_);
    while (at_ < page_.size()) {
      pass("--", at_);
      while (has("-")) ++at_;
      if (has(">") || has("!>")) return pass(">", at_);
    }
  }

  std::string_view tag_name() {
    const std::size_t begin = at_;
    while (at_ < page_.size() && !is_space(page_[at_]) && page_[at_] != '/' && page_[at_] != '>') {
      ++at_;
    }
    return page_.substr(begin, at_ - begin);
  }
  void pass_spaces() {
    while (is_space(after(0))) ++at_;
  }
  std::string_view attribute_name() {
    const std::size_t begin = at_++;  // it may begin with =
    while (at_ < page_.size() && !is_space(page_[at_]) &&
           std::string_view("/>=").find(page_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return page_.substr(begin, at_ - begin);
  }
  std::string_view attribute_value() {
    pass_spaces();
    const char quote = after(0);
    const std::size_t begin = at_;
    if (quote == '"' || quote == '\'') {
      pass({&quote, 1}, begin + 1);
      return page_.substr(begin + 1, at_ - begin - 2);
    }
    while (at_ < page_.size() && !is_space(page_[at_]) && page_[at_] != '>') ++at_;
    return page_.substr(begin, at_ - begin);
  }
  /// Of attributes of one name the first holds. \returns whether the tag is ended
  bool attributes(PageElement& element) {
    bool has_id = false;
    bool has_type = false;
    while (at_ < page_.size()) {
      if (is_space(page_[at_]) || page_[at_] == '/') {
        ++at_;
        continue;
      }
      if (page_[at_] == '>') {
        ++at_;
        return true;
      }
      const std::string name = lower_case(attribute_name());
      pass_spaces();
      std::string_view value;
      if (after(0) == '=') {
        ++at_;
        value = attribute_value();
      }
      if (name == "id" && !std::exchange(has_id, true)) element.id = value;
      if (name == "type" && !std::exchange(has_type, true)) element.type = value;
    }
    return false;
  }

  void end_tag() {
    at_ += 2;
    const std::string name = lower_case(tag_name());
    PageElement ignored;
    attributes(ignored);
    if (name == "template" && templates_ > 0) --templates_;
  }
  void start_tag() {
    PageElement element;
    element.begin = at_++;
    element.name = lower_case(tag_name());
    if (!attributes(element)) return;
    const std::size_t begin = at_;
    std::size_t end = std::min(page_.find('<', at_), page_.size());
    element.ended = end < page_.size();
    if (element.name == "plaintext") {
      at_ = end = page_.size();
    } else if (std::ranges::find(kTextElements, element.name) != kTextElements.end()) {
      end = end_of_text(element.name);
      at_ = end;
      if (end < page_.size()) end_tag();
      element.ended = end < page_.size() && page_[at_ - 1] == '>';
    }
    element.text = page_.substr(begin, end - begin);
    const bool shown = templates_ == 0;
    if (element.name == "template") ++templates_;
    if (shown && !element.id.empty()) found_.push_back(std::move(element));
  }

  /// Whether a tag of the name begins here, whose < or </ is `before`.
  bool begins_tag(std::string_view before, std::string_view name, std::size_t at) const {
    const std::string_view rest = page_.substr(at);
    const std::size_t length = before.size() + name.size();
    if (!rest.starts_with(before) || rest.size() <= length) return false;
    const char next = rest[length];
    return (is_space(next) || next == '/' || next == '>') &&
           lower_case(rest.substr(before.size(), name.size())) == name;
  }
  /// Where the end tag of an element begins whose content is text. In a script, a `<script` behind
  /// `<!--` has to be ended first. Source: section 13.2.5, "Script data double escaped state".
  std::size_t end_of_text(std::string_view name) const {
    bool escaped = false;
    bool doubly = false;
    std::size_t dashes = 0;  // an end of the escaped text may not begin before it
    for (std::size_t at = at_; at < page_.size(); ++at) {
      const std::string_view rest = page_.substr(at);
      if (begins_tag("</", name, at)) {
        if (!doubly) return at;
        doubly = false;
      } else if (name == "script" && escaped && at >= dashes && rest.starts_with("-->")) {
        escaped = doubly = false;
      } else if (name == "script" && !escaped && rest.starts_with("<!--")) {
        escaped = true;
        dashes = at + 2;  // <!--> is whole
      } else if (escaped && !doubly && begins_tag("<", name, at)) {
        doubly = true;
      }
    }
    return page_.size();
  }

  std::string_view page_;
  std::size_t at_ = 0;
  int templates_ = 0;  // open here
  std::vector<PageElement> found_;
};

}  // namespace

std::vector<PageElement> elements_with_id(std::string_view page) {
  return PageScan(page).elements();
}

}  // namespace shardwise
