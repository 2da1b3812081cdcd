#include "simulator/drawing/timeline_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "planner/spec/text/memory_unit.h"

namespace shardwise::sim {
namespace {

struct Unit {
  double size = 1;
  std::string_view name;
};

constexpr double kTickRounding = 1e-9;

/// 1, 2 or 5 times a power of ten, in some unit.
struct Step {
  int mantissa = 1;
  int exponent = 0;
  double times(std::int64_t i) const {
    // A power of ten above 1 and its inverse are exact to the last digit that is printed.
    const double ten = std::pow(10, std::abs(exponent));
    const auto n = static_cast<double>(i * mantissa);
    return exponent < 0 ? n / ten : n * ten;
  }
  Tick tick(std::int64_t i, const Unit& unit) const {
    if (i == 0) return {0, "0"};
    return {times(i) * unit.size,
            fmt::format("{:.{}f} {}", times(i), std::max(0, -exponent), unit.name)};
  }
};

/// The largest step that divides `length` into at least `least` parts. \pre length > 0
Step round_step(double length, double least) {
  for (int exponent = static_cast<int>(std::floor(std::log10(length)));; --exponent) {
    for (const int mantissa : {5, 2, 1}) {
      const Step step = {mantissa, exponent};
      if (length >= least * step.times(1)) return step;
    }
  }
}

std::vector<Tick> ticks(double most, const Unit& unit, double least) {
  std::vector<Tick> made = {{0, "0"}};
  if (!(most > 0)) return made;
  const double length = most / unit.size * (1 + kTickRounding);
  const Step step = round_step(length, least);
  for (std::int64_t i = 1; step.times(i) <= length; ++i) made.push_back(step.tick(i, unit));
  return made;
}

struct Part {
  double from = 0;
  double to = 0;
};

/// Those between, of an axis of which `drawn` in all is drawn.
std::vector<Tick> ticks_between(Part part, double drawn, const Unit& unit, double least) {
  const Step step = round_step(drawn / unit.size * (1 + kTickRounding), least);
  std::vector<Tick> made;
  const double first = std::ceil(part.from / unit.size / step.times(1) * (1 - kTickRounding));
  for (auto i = static_cast<std::int64_t>(first);; ++i) {
    Tick tick = step.tick(i, unit);
    if (tick.value > part.to) return made;
    made.push_back(std::move(tick));
  }
}

Unit unit_of_memory(Bytes most) {
  const MemoryUnit unit = memory_unit(std::max(most, 1_KiB));
  return {unit.bytes, unit.name};
}

// Units change where those of format_seconds do.
Unit unit_of_time(double s) {
  return s < 0.9995e-3   ? Unit{1e-6, "us"}
         : s < 0.9995    ? Unit{1e-3, "ms"}
         : s < 600       ? Unit{1, "s"}
         : s < 2 * 3600  ? Unit{60, "min"}
         : s < 48 * 3600 ? Unit{3600, "h"}
                         : Unit{86400, "days"};
}

/// Values between, of `mantissas` times powers of ten.
std::vector<double> powers_of_ten(Part part, std::initializer_list<int> mantissas) {
  std::vector<double> values;
  const auto first = static_cast<int>(std::floor(std::log10(part.from)));
  const double last = part.to * (1 + kTickRounding);
  for (int exponent = first; Step{1, exponent}.times(1) <= last; ++exponent) {
    for (const int mantissa : mantissas) {
      const double value = Step{mantissa, exponent}.times(1);
      if (value >= part.from * (1 - kTickRounding) && value <= last) values.push_back(value);
    }
  }
  return values;
}

std::vector<Tick> log_ticks(Part part, const Unit& unit) {
  std::vector<Tick> made;
  for (const double value : log_values(part.from / unit.size, part.to / unit.size)) {
    made.push_back({value * unit.size, fmt::format("{:g} {}", value, unit.name)});
  }
  return made;
}

}  // namespace

std::vector<Tick> time_ticks(Seconds length) {
  return ticks(length.value(), unit_of_time(length.value()), 5);
}

std::vector<Tick> time_ticks_between(Seconds from, Seconds to, Seconds drawn, Seconds length,
                                     double parts) {
  return ticks_between({from.value(), to.value()}, drawn.value(), unit_of_time(length.value()),
                       parts);
}

std::vector<Tick> memory_ticks(Bytes most) {
  return ticks(static_cast<double>(most.value()), unit_of_memory(most), 2);
}

std::vector<Tick> memory_ticks_between(Bytes from, Bytes to, double parts) {
  return ticks_between({static_cast<double>(from.value()), static_cast<double>(to.value())},
                       static_cast<double>((to - from).value()), unit_of_memory(to), parts);
}

std::string moment_text(Seconds at, Seconds close) {
  constexpr int kMost = 9;
  const Unit unit = unit_of_time(at.value());
  const double parts = unit.size / close.value();
  const int decimals = std::clamp(static_cast<int>(std::ceil(std::log10(parts))) + 2, 0, kMost);
  return at > Seconds(0) ? fmt::format("{:.{}f} {}", at.value() / unit.size, decimals, unit.name)
                         : "0 s";
}

double parts_within(double room, double label) {
  constexpr double kMostOfLeast = 2.5;
  return std::max(1.0, room / label / kMostOfLeast);
}

Bytes memory_axis(Bytes most, Bytes limit) {
  constexpr std::int64_t kUnseen = 8;
  return most > Bytes(0) && most.value() < limit.value() / kUnseen ? most : std::max(most, limit);
}

std::vector<double> log_values(double from, double to) {
  constexpr std::size_t kMost = 9;
  constexpr std::size_t kLeast = 3;
  std::vector<double> values = powers_of_ten({from, to}, {1, 2, 5});
  if (values.size() > kMost) values = powers_of_ten({from, to}, {1});
  if (values.size() >= kLeast) return values;
  values.clear();
  for (const Tick& tick : ticks_between({from, to}, to - from, Unit{}, kLeast)) {
    values.push_back(tick.value);
  }
  return values;
}

std::vector<Tick> log_time_ticks(Seconds from, Seconds to) {
  return log_ticks({from.value(), to.value()}, unit_of_time(from.value()));
}

std::vector<Tick> log_memory_ticks(Bytes from, Bytes to) {
  return log_ticks({static_cast<double>(from.value()), static_cast<double>(to.value())},
                   unit_of_memory(from));
}

}  // namespace shardwise::sim
