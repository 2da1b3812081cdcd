#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

/// An element of an HTML page that has an id.
struct PageElement {
  std::string name;  // in lower case
  std::string id;
  std::string type;
  std::size_t begin = 0;  // of its tag in the page
  std::string_view text;  // of script: to its end tag; of others: to the next tag
  bool ended = false;     // the page goes on behind its text
};

/// The elements with an id of a page, as a browser that runs scripts finds them: not what looks
/// like one in a comment, in a script, style or other element whose content is text, in a value of
/// an attribute, or in a template. A CDATA section is taken for text wherever it stands. References
/// to characters in attributes are left as they are.
/// Source: https://html.spec.whatwg.org/multipage/parsing.html, section 13.2.5.
/// \param page  outlives what is returned
std::vector<PageElement> elements_with_id(std::string_view page);

}  // namespace shardwise
