#pragma once

#include <string>
#include <string_view>

namespace shardwise::sim {

/// `text` as HTML and XML show it to the letter, between tags and in quoted attributes. What would
/// steer the reader or break the page becomes U+FFFD: control characters, marks that change the
/// direction of writing.
/// \pre UTF-8
std::string escaped(std::string_view text);

}  // namespace shardwise::sim
