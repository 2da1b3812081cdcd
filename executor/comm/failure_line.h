#pragma once

#include <exception>
#include <string>

namespace shardwise::exec {

/// What a rank's run ends with: "rank 3, fwd.layer0.mb0: why", or "rank 3: why" without a place. A
/// reason that begins with its rank, as those of CUDA do, says it once.
std::string failure_line(int rank, const std::string& place, const std::exception& broken);
std::string failure_line(int rank, const std::string& place, std::string why);

}  // namespace shardwise::exec
