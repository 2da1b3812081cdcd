#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardwise {

/// Text that bash makes of what stands between $' and ': \n, \t, \\, \', \101, \x41, \u00e9 and so
/// on; a backslash before anything else stays. Nothing where a control character that is no line
/// end and no tab comes out, or what is not UTF-8: no argument has them. Source: bash's manual,
/// ANSI-C Quoting.
std::optional<std::string> ansi_c_text(std::string_view raw);

}  // namespace shardwise
