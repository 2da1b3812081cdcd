#pragma once

#include <string>

#include "answers/html/sections.h"

namespace shardwise::sim {

/// A plan, its prediction and its measurement as one HTML file: docs/formats.md, "The report". It
/// loads nothing from elsewhere, is readable without scripts, and holds the plan (plan_page.h).
/// Equal content gives equal bytes.
std::string report_page(const PageContent& page);

}  // namespace shardwise::sim
