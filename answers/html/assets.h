#pragma once

#include <string_view>

namespace shardwise::sim {

// Texts of report.css and report.js, built in so that a page is made from no other file.
std::string_view report_style();
std::string_view report_script();

}  // namespace shardwise::sim
