#pragma once

#include <exception>
#include <string>

#include "executor/comm/abort.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {

/// Failure between ranks: what each of them issued last is worth telling.
class BetweenRanks : public IoError {
 public:
  using IoError::IoError;
};

/// Last line of a rank's run: "rank 3, fwd.layer0.mb0: why", or "rank 3: why" without a place. A
/// reason that begins with its rank, as those of CUDA do, says it once.
std::string failure_line(int rank, const std::string& place, const std::exception& broken);
std::string failure_line(int rank, const std::string& place, std::string why);
/// The failure with that line, of the kind that the exception is of.
Failure failure_of(int rank, const std::string& place, const std::exception& broken);

}  // namespace shardwise::exec
