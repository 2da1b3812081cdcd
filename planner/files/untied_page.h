#pragma once

#include <string>

namespace shardwise {

/// Says on standard error where a plan was read from a page that shows no digest of it
/// (untied_plan()).
void tell_untied_page(const std::string& file);

}  // namespace shardwise
