#pragma once

#include <string>

#include "planner/spec/text/error.h"

namespace shardwise::test {

/// What a function that must fail says.
template <class Function>
std::string failure_of(const Function& function) {
  try {
    function();
  } catch (const IoError& broken) {
    return broken.what();
  }
  return "no failure";
}

}  // namespace shardwise::test
