#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/control_group.h"
#include "executor/engine/program_binder.h"

namespace shardwise::exec {

/// Has a rank's operations make and choose what the passes of its programs need, before the first
/// step (Compute::prepare()). All ranks call together. Kernels are timed on the arena's memory, as
/// states are not there yet: zeros are left in it, but for the kernels' workspace.
/// \param everyone  all ranks  \param stream  of `device`  \param tell  of lines for people; may be
/// none
void prepare_compute(RankParts& parts, const std::vector<std::unique_ptr<ProgramBinder>>& binders,
                     ControlGroup& everyone, Device& device, DeviceStream& stream,
                     const std::function<void(const std::string& line)>& tell);

}  // namespace shardwise::exec
