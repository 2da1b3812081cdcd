#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardwise::test {

/// An element of a page.
struct PageElement {
  std::string name;        // "td"
  std::string attributes;  // as written: " class=\"n\""
  std::string text;        // of it and of all inside it, characters as a reader sees them
  /// The value of an attribute; empty when it has none.
  std::string attribute(std::string_view key) const;
};

/// A page read strictly: every element is closed in its turn, attributes are quoted and named once,
/// `<`, `>`, `&` and quotes stand nowhere else.
class Page {
 public:
  explicit Page(std::string_view text);

  /// Parts that are not well-formed; empty where all is.
  const std::vector<std::string>& mistakes() const { return mistakes_; }
  const std::vector<PageElement>& elements() const { return elements_; }
  /// Elements of a name with this text in their attributes, in their order.
  std::vector<PageElement> all(std::string_view name, std::string_view having = {}) const;

 private:
  std::vector<std::string> mistakes_;
  std::vector<PageElement> elements_;
};

}  // namespace shardwise::test
