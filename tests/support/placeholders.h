#pragma once

#include <string>

namespace shardwise::test {

/// The expected text of a golden file, its lists and counts filled in from the program, so that a
/// new entry changes no golden file: <model types>, <models>, <clusters>, <schedules>, <engines>.
/// <models> and <clusters> are how many the catalogue has, the others the names with ", " between.
std::string filled(std::string text);

}  // namespace shardwise::test
