#pragma once

#include <cstdint>
#include <string>

#include "planner/spec/text/units.h"

namespace shardwise {

// The one place where a quantity becomes text for people. Three significant digits, a space before
// the unit. Programs read JSON, where the number is exact and the unit is in the key.

/// Memory, in powers of 1024 as nvidia-smi and PyTorch count it: "73.8 GiB", "512 MiB", "37 B".
std::string format_bytes(Bytes bytes);
/// The number alone, for a column headed GiB: "73.84", "0.02", "-" for nothing.
std::string format_gib(Bytes bytes);
/// A span: "4.50 us", "12.3 ms", "3.21 s"; from ten minutes "25.0 min", "3.50 h", "12.0 days".
std::string format_seconds(Seconds time);
/// "450 GB/s", 1 GB = 1e9 bytes, as links are sold.
std::string format_bandwidth(BytesPerSecond rate);
/// "989 TFLOP/s".
std::string format_flops_rate(FlopsPerSecond rate);
/// "51.5 GFLOP", "1.20 PFLOP".
std::string format_flops(Flops work);
/// Every digit, in groups of three: "8,030,261,248".
std::string format_count(std::int64_t count);
/// Rounded, with a scale a reader knows: "124 M", "8.03 B", "1.00 T"; below a million as
/// format_count.
std::string format_scaled(double count);
/// "38.4 %".
std::string format_percent(double share);
/// "$0.87", "$12.30", "$4,210".
std::string format_dollars(double dollars);

}  // namespace shardwise
