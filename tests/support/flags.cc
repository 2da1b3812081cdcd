#include "tests/support/flags.h"

#include <regex>
#include <set>
#include <sstream>

namespace shardwise::test {

bool HelpFlag::takes_number() const {
  static const std::set<std::string> kWords = {
      "AXES",          "DATE",     "DIR",          "ENGINE",       "FIELD",     "FIELD=VALUE",
      "FIELD=VALUE,…", "FILE",     "ID",           "KIND",         "NAME",      "NAME|FILE",
      "NAMES",         "DIR|WORD", "DTYPE=TFLOPS", "COLUMN=VALUE", "SOURCE",    "TRACE",
      "TYPE",          "VERSION",  "WHAT",         "on|off",       "usual|full"};
  return !kWords.contains(type);
}

std::vector<HelpFlag> flags_in_help(const std::string& help) {
  static const std::regex kFlag("^  (?:-[a-zA-Z],)?(--[a-z0-9-]+) ([^ ]+)( .*)?$");
  std::vector<HelpFlag> flags;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, kFlag)) flags.push_back({found[1], found[2]});
  }
  return flags;
}

const std::vector<std::string>& no_numbers() {
  static const std::vector<std::string> kTexts = {
      "nan", "NaN", "inf", "-inf", "infinity", "1e400", "-1e400", "0x10",  "0x1p3",
      " ",   " 1",  "1 ",  "1x",   "+1",       "1;5",   "--",     "eight", "18446744073709551616",
      "1e30"};
  return kTexts;
}

}  // namespace shardwise::test
