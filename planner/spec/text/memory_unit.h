#pragma once

#include <string>
#include <string_view>

#include "planner/spec/text/units.h"

namespace shardwise {

/// A unit of memory: B, KiB and so on to PiB, in powers of 1024.
struct MemoryUnit {
  double bytes = 1;
  std::string_view name = "B";

  /// The number alone, for a column or an axis headed by the name: "73.84", "0.02", "-" for
  /// nothing.
  std::string number(Bytes of) const;
};

/// The unit of a table or a chart in which `most` is the largest amount: that of
/// format_bytes(most).
MemoryUnit memory_unit(Bytes most);

}  // namespace shardwise
