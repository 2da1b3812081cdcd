#pragma once

#include <string>

#include "planner/spec/text/error.h"

namespace shardwise::test {

/// Message of a function that must fail.
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
