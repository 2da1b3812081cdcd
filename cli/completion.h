#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwise::cli {

/// A word that may stand next, and what it means.
struct Candidate {
  std::string word;
  std::string meaning;
};

/// Next words of a command line: verbs, flags of the verb, names of the catalogue, engines and
/// other values of a flag. Nothing where a file may stand. \param words  those after the program's
/// name; the last is the word being typed, which may be empty
std::vector<Candidate> candidates(const CLI::App& app, const std::vector<std::string>& words);

/// The script that makes bash, zsh or fish ask `shardwise __complete` for candidates.
std::string completion_script(const std::string& shell);

/// The first word of a command line of a completion script.
inline constexpr const char* kCompleteVerb = "__complete";

}  // namespace shardwise::cli
