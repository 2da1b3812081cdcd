#pragma once

#include <string>
#include <vector>

#include "tests/support/command.h"

namespace shardwise::test {

/// The first Chromium on PATH; empty where there is none.
std::string browser();

/// Runs it without a window. \pre there is one
/// \param profile  a folder of the test's own
Outcome run_browser(const std::string& profile, const std::vector<std::string>& arguments);

}  // namespace shardwise::test
