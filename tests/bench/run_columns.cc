#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "planner/spec/text/check.h"
#include "tests/bench/program_columns.h"

namespace shardwise::sim {
namespace {

// A loop compiled for the vectors of each x86-64 too, chosen when the program starts. Clang's
// sanitizers do not work with such functions.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SHARDWISE_LANES_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SHARDWISE_LANES_CLONES
#endif
#define SHARDWISE_LANES_INLINE __attribute__((always_inline)) inline

/// Numbers of so many layouts, side by side.
template <std::size_t kLanes>
struct Lanes {
  double value __attribute__((vector_size(kLanes * sizeof(double))));
};
template <>
struct Lanes<1> {
  double value;
};

template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void load(Lanes<kLanes>& lanes, const double* from, std::size_t number) {
  std::memcpy(&lanes.value, from + number * kLanes, sizeof lanes);
}
template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void store(const Lanes<kLanes>& lanes, double* to, std::size_t number) {
  std::memcpy(to + number * kLanes, &lanes.value, sizeof lanes);
}
template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void raise(Lanes<kLanes>& lanes, const Lanes<kLanes>& to) {
  lanes.value = lanes.value > to.value ? lanes.value : to.value;
}

template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void add_up(Lanes<kLanes>& sum, const std::uint32_t* term,
                                   const std::uint32_t* end, const double* prices) {
  sum = Lanes<kLanes>{};
  for (; term != end; ++term) {
    Lanes<kLanes> price;
    load(price, prices, *term);
    sum.value += price.value;
  }
}

template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void sum_up(std::span<const ProgramColumns::Duration> durations,
                                   const std::uint32_t* terms, const double* prices, double* sums) {
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const auto& [first, second] = durations[i];
    Lanes<kLanes> sum;
    Lanes<kLanes> other;
    add_up(sum, terms + first.begin, terms + first.end, prices);
    add_up(other, terms + second.begin, terms + second.end, prices);
    raise(sum, other);
    store(sum, sums, i);
  }
}

template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void run_all(std::span<const ProgramColumns::Instruction> instructions,
                                    const double* durations, double* ends) {
  for (const ProgramColumns::Instruction& each : instructions) {
    Lanes<kLanes> end;
    Lanes<kLanes> other;
    Lanes<kLanes> duration;
    load(end, ends, each.after);
    load(other, ends, each.other);
    load(duration, durations, each.duration);
    raise(end, other);
    end.value += duration.value;
    store(end, ends, each.to);
  }
}

struct Columns {
  std::span<const ProgramColumns::Instruction> instructions;
  std::span<const ProgramColumns::Duration> durations;
  const std::uint32_t* terms = nullptr;
};

template <std::size_t kLanes>
SHARDWISE_LANES_INLINE void run_lanes(const Columns& columns, const double* prices, double* sums,
                                      double* ends) {
  sum_up<kLanes>(columns.durations, columns.terms, prices, sums);
  run_all<kLanes>(columns.instructions, sums, ends);
}

SHARDWISE_LANES_CLONES void run_1(const Columns& columns, const double* prices, double* sums,
                                  double* ends) {
  run_lanes<1>(columns, prices, sums, ends);
}
SHARDWISE_LANES_CLONES void run_4(const Columns& columns, const double* prices, double* sums,
                                  double* ends) {
  run_lanes<4>(columns, prices, sums, ends);
}
SHARDWISE_LANES_CLONES void run_8(const Columns& columns, const double* prices, double* sums,
                                  double* ends) {
  run_lanes<8>(columns, prices, sums, ends);
}

}  // namespace

void ProgramColumns::run(const double* prices, int lanes, Room& room, double* lengths) const {
  SHARDWISE_CHECK(lanes == 1 || lanes == 4 || lanes == 8, std::to_string(lanes));
  const auto width = static_cast<std::size_t>(lanes);
  room.durations.resize(durations_.size() * width);
  room.ends.resize(places_ * width);
  double* const ends = room.ends.data();
  double* const length = ends + std::size_t{result_} * width;
  std::fill_n(ends, width, 0.0);  // the step's begin
  std::fill_n(length, width, 0.0);
  const auto run = lanes == 1 ? run_1 : lanes == 4 ? run_4 : run_8;
  run({instructions_, durations_, terms_.data()}, prices, room.durations.data(), ends);
  std::copy_n(length, width, lengths);
}

}  // namespace shardwise::sim
