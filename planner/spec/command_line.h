#pragma once

#include <memory>

// What the command lines of all programs have in common.

namespace CLI {
class FormatterBase;
}

namespace shardwise {

/// Help of kHelpWidth columns: names to the left, what they mean wrapped to the right. Of a value
/// it has the name alone; what a flag needs besides is said after its meaning.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace shardwise
