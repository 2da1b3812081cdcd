#pragma once

#include "executor/launch/launcher.h"
#include "executor/launch/launcher_variables.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// Gives the rendezvous of a launcher's processes the job's secret: SHARDWISE_SECRET, or what the
/// file SHARDWISE_SECRET_FILE holds, which nobody but its owner may read or write. Processes of one
/// host need none. Those that meet over a network do, unless SHARDWISE_INSECURE=1 says that
/// everything that reaches it may join. No message shows the secret.
Diagnostics find_secret(LauncherVariables& from, Launcher& launcher);

}  // namespace shardwise::exec
