#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardwise {

/// Facts of a plan or a configuration by name. Switches are "true" and "false". What is not
/// stated is not there.
using Values = std::map<std::string, std::string>;

/// One condition on a value.
struct Clause {
  enum class Kind : std::uint8_t {
    is,      // one of `texts`
    is_not,  // stated, and none of `texts`
    above,   // a number greater than `number`
    below,
    has,     // a list with one of `texts`: "a,b"
    beyond,  // a list with something that is none of `texts`
    stated,
    not_stated,
  };
  std::string name;
  Kind kind = Kind::is;
  std::vector<std::string> texts;
  double number = 0;
};

/// True if every clause is; an empty list is true.
using Conditions = std::vector<Clause>;

bool holds(const Clause& clause, const Values& values);
bool holds(const Conditions& conditions, const Values& values);

/// The value of dp where a text is "@dp", else the text; as it is where dp is not known.
std::string meant(const std::string& text, const Values& values);
/// The conditions with what their texts mean.
Conditions meant(Conditions conditions, const Values& values);

}  // namespace shardwise
