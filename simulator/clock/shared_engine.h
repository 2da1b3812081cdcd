#pragma once

#include <stop_token>
#include <vector>

#include "simulator/clock/engine.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// By actor: when the transfers inside its passes ended, in the order in which they run.
using InsideEnds = std::vector<std::vector<double>>;

/// As run_alone, but what runs at once on a rank shares it:
/// - transfers share the links of each tier, each way, a rank's own and those it shares with other
///   ranks: where those that run at once would keep a link busy for more than all of the time, each
///   gets its proportion (processor sharing);
/// - transfers inside a layer's pass share links like all others; when that makes them late, the
///   pass is as late;
/// - kernels of the compute and copy streams lose the share of the multiprocessors that
///   communication takes while it moves bytes, at most half of them;
/// - transfers and the kernels that memory bandwidth limits share it in proportion to what each
///   would take alone.
/// A collective is as slow as the slowest of its simulated ranks. Rates change only when something
/// begins or ends, and where nothing is shared the times are run_alone's to the bit.
/// docs/simulator.md, "Links" to "Memory bandwidth".
/// \param inside  filled; may be null
Timeline run_shared(const Workload& work, const std::stop_token& stop = {},
                    InsideEnds* inside = nullptr);

}  // namespace shardwise::sim
