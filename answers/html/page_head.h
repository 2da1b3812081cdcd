#pragma once

#include <string>
#include <string_view>

namespace shardwise::sim {

/// The document up to its body: title, style, and a policy under which nothing is loaded from
/// elsewhere and no script runs but `script`. \param script  empty for none
std::string page_head(std::string_view title, std::string_view version, std::string_view script);

}  // namespace shardwise::sim
