#pragma once

namespace shardwise {

/// The shortest number that a reader, which multiplies it by `unit`, turns into `value` again; the
/// nearest one where there is none. \pre unit > 0
double in_units(double value, double unit);

}  // namespace shardwise
