#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace shardwise {

/// A flag of a layout as `plan` takes it: "--lock tp=4" for "--tp-size 4". Empty where no field of
/// a layout was meant.
std::string meant_lock(std::string_view typed, std::string_view value);

/// The flags of a verb, with their dashes.
struct KnownFlags {
  std::vector<std::string> names;
  std::vector<std::string> switches;  // the flags that take no value, or true and false
};
KnownFlags flags_of(const CLI::App& verb);

/// Suggestion of a program for a flag that the verb does not have: from the verb's flags, the flag
/// as typed and its value. Empty for nothing.
using ElsewhereMeant = std::function<std::string(const KnownFlags& flags, std::string_view typed,
                                                 std::string_view value)>;

/// Problems of the words that neither the command nor its verb took, one line each, with what the
/// user may have meant. Empty when every word was taken.
/// \pre app has parsed a command line, or failed to
std::vector<std::string> unknown_words(const CLI::App& app,
                                       const ElsewhereMeant& elsewhere_meant = {});

/// "shardwise plan" when that verb was read before the mistake, else "shardwise".
std::string spoken_name(const CLI::App& app);

}  // namespace shardwise
