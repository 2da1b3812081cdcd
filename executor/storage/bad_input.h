#pragma once

#include <stdexcept>

#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Something the user gave is wrong and was found only when the run met it. Says file and place as
/// a problem does. Caught in main, which exits with 2.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  explicit BadInput(const Diagnostic& problem) : std::runtime_error(to_string(problem)) {}
};

}  // namespace shardwise::exec
