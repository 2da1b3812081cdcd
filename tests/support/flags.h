#pragma once

#include <string>
#include <vector>

namespace shardwise::test {

/// A flag with a value, as a program's help lists it: "--jitter" "SHARE".
struct HelpFlag {
  std::string name;  // the long one
  std::string type;
  /// Its values are numbers. Every type that is not known for words or files counts as a number, so
  /// that a new one is looked at.
  bool takes_number() const;
};
std::vector<HelpFlag> flags_in_help(const std::string& help);

/// Texts that a flag for a number must refuse, whatever its range.
const std::vector<std::string>& no_numbers();

}  // namespace shardwise::test
