#include "planner/spec/text/memory_unit.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>

namespace shardwise {

std::string MemoryUnit::number(Bytes of) const {
  if (of == Bytes(0)) return "-";
  if (bytes == 1) return fmt::format("{}", of.value());
  return fmt::format("{:.2f}", static_cast<double>(of.value()) / bytes);
}

MemoryUnit memory_unit(Bytes most) {
  static constexpr std::array<std::string_view, 6> kNames = {"B",   "KiB", "MiB",
                                                             "GiB", "TiB", "PiB"};
  constexpr double kStep = 1024;
  MemoryUnit unit;
  const double size = std::abs(static_cast<double>(most.value()));
  std::size_t name = 0;
  // Goes to the next unit already where rounding would print 1024.
  while (name + 1 < kNames.size() && size / unit.bytes >= kStep - 0.5) {
    unit.bytes *= kStep;
    unit.name = kNames[++name];
  }
  return unit;
}

}  // namespace shardwise
