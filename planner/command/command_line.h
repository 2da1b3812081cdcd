#pragma once

#include <memory>
#include <string>
#include <vector>

// Parts that the command lines of all programs share.

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace shardwise {

/// Help of kHelpWidth columns: names to the left, what they mean wrapped to the right. Of a value
/// it has the name alone; what a flag needs besides is said after its meaning.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// Gives `app` --help-all, and lets its --help show the flags `first` alone, in their order,
/// without groups. After the flags are added. \pre each is one of app's
void show_first(CLI::App& app, std::vector<std::string> first);

/// Makes every flag of `app` and of its verbs refuse an empty value, as it does a missing one: a
/// script whose variable is not set would not have what it asked for. A switch takes true or false
/// after "=" and nothing else. After the flags are added.
void refuse_empty_values(CLI::App& app);

}  // namespace shardwise
