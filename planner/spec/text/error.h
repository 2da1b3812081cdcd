#pragma once

#include <stdexcept>

namespace shardwise {

/// The world broke: disk full, unreadable file. Caught once, in main, which exits with 3.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace shardwise
