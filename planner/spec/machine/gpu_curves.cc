#include "planner/spec/machine/gpu_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "planner/spec/json/fields.h"
#include "planner/spec/json/in_units.h"
#include "planner/spec/machine/fit_record.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/machine/machine_names.h"

namespace shardwise {
namespace {

constexpr double kLeastShare = 1e-6;
constexpr std::int64_t kLargestTile = 1 << 16;
constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;
constexpr std::size_t kMostTiles = 8;
constexpr std::size_t kMostBlocks = 10'000;
constexpr std::size_t kMostDTypes = kAllDTypes.size();

template <class Io, class T>
void list_microseconds(Io& io, std::string_view key, T& time) {
  double number = in_units(time.value(), 1e-6);  // NOLINT(misc-const-correctness): a reader sets it
  io.number(key, number, 0, kMostLatencyUs);
  if constexpr (Io::kReads) time = Seconds(number * 1e-6);
}

template <class Io, class T>
void list_share(Io& io, std::string_view key, T& share) {
  io.number(key, share, kLeastShare, 1);
}

template <class Io, class T>
void list_shapes(Io& io, T& shapes) {
  io.require({"m", "n", "k"});
  const auto ascending = [&](std::string_view key, auto& values) {
    io.integer_row(key, values, 1, kLargestDimension);
    if constexpr (Io::kReads) {
      if (std::is_sorted(values.begin(), values.end(), std::less_equal<>())) return;
      io.fail(key, "does not ascend");
    }
  };
  ascending("m", shapes.m);
  ascending("n", shapes.n);
  ascending("k", shapes.k);
}
static_assert(field_count<MeasuredShapes>() == 3, "list the new field above");

template <class Io, class T>
void list_curve_fit(Io& io, T& fit) {
  list_fit(io, fit);
  if constexpr (Io::kReads) {
    if (fit.measured && fit.fitted_on.empty())
      io.fail("fitted_on", "names no data", "name the source of the measurements");
  }
}
static_assert(field_count<FitRecord>() == 6, "list the new field above");

template <class Io, class T>
void list_measured_with(Io& io, T& with) {
  io.number("slowdown", with.slowdown, 0, 100);
  list_microseconds(io, "slowdown_time_us", with.slowdown_time);
  io.number("extra_moves", with.extra_moves, 0, 1000);
  list_microseconds(io, "extra_start_us", with.extra_start);
}
static_assert(field_count<MeasuredWith>() == 4, "list the new field above");

template <class Io, class T>
void list_tile(Io& io, T& tile) {
  io.require({"rows", "columns"});
  io.integer("rows", tile.rows, 1, kLargestTile);
  io.integer("columns", tile.columns, 1, kLargestTile);
  list_share(io, "rate_share", tile.rate_share);
}
static_assert(field_count<GemmTile>() == 3, "list the new field above");

template <class Io, class T>
void list_curve_measurement(Io& io, T& curve) {
  if (!curve.fit.measured) return;
  io.object("measured_with", curve.measured_with,
            [](auto& nested, auto& with) { list_measured_with(nested, with); });
}

template <class Io, class T>
void list_fit_of(Io& io, T& curve) {
  io.require({"fit"});
  io.object("fit", curve.fit, [](auto& nested, auto& fit) { list_curve_fit(nested, fit); });
}

template <class Io, class T>
void list_gemm(Io& io, T& curve) {
  io.require({"dtype", "rate_share", "bandwidth_share"});
  io.choice("dtype", curve.dtype);
  list_microseconds(io, "start_us", curve.start);
  list_share(io, "rate_share", curve.rate_share);
  list_microseconds(io, "epilogue_us", curve.epilogue);
  io.number("wave_rounding", curve.wave_rounding, 0, 1);
  list_microseconds(io, "split_us", curve.split);
  list_share(io, "bandwidth_share", curve.bandwidth_share);
  io.objects("tiles", curve.tiles, kMostTiles,
             [](auto& nested, auto& tile) { list_tile(nested, tile); });
  list_share(io, "sustained_share", curve.sustained_share);
  io.boolean("sustained_measured", curve.sustained_measured);
  io.text("sustained_source", curve.sustained_source);
  list_fit_of(io, curve);
  if (curve.fit.measured) {
    io.require({"shapes"});
    io.objects("shapes", curve.shapes, kMostBlocks,
               [](auto& nested, auto& shapes) { list_shapes(nested, shapes); });
  }
  list_curve_measurement(io, curve);
  if constexpr (Io::kReads) {
    if (curve.tiles.empty()) io.fail("tiles", "no tiles", "give rows and columns of one at least");
    const bool sourced = curve.sustained_share == 1 && !curve.sustained_measured;
    if (!sourced && curve.sustained_source.empty()) {
      io.fail("sustained_share", "has no source", "give its source in sustained_source");
    }
  }
}
static_assert(field_count<GemmCurve>() == 14, "list the new field above");

template <class Io, class T>
void list_grouped_gemm(Io& io, T& curve) {
  io.require({"rate_share"});
  list_share(io, "rate_share", curve.rate_share);
  list_microseconds(io, "group_us", curve.group);
  list_fit_of(io, curve);
}
static_assert(field_count<GroupedGemmCurve>() == 3, "list the new field above");

template <class Io, class T>
void list_head_rate(Io& io, T& rate) {
  io.require({"head_dim", "rate_share"});
  io.integer("head_dim", rate.head_dim, 1, kLargestTile);
  list_share(io, "rate_share", rate.rate_share);
}
static_assert(field_count<HeadRate>() == 2, "list the new field above");

template <class Io, class T>
void list_attention(Io& io, T& curve) {
  io.require({"bandwidth_share"});
  list_microseconds(io, "start_us", curve.start);
  list_microseconds(io, "block_us", curve.block);
  io.number("tail_share", curve.tail_share, 0, 10);
  list_share(io, "bandwidth_share", curve.bandwidth_share);
  io.objects("rates", curve.rates, kMostTiles,
             [](auto& nested, auto& rate) { list_head_rate(nested, rate); });
  list_fit_of(io, curve);
  list_curve_measurement(io, curve);
  if constexpr (Io::kReads) {
    if (curve.rates.empty()) io.fail("rates", "no rates", "give one head dimension at least");
    for (std::size_t i = 1; i < curve.rates.size(); ++i) {
      if (curve.rates[i].head_dim > curve.rates[i - 1].head_dim) continue;
      io.fail("rates", "head dimensions do not ascend");
      break;
    }
  }
}
static_assert(field_count<AttentionCurve>() == 7, "list the new field above");

template <class Io, class T>
void list_attention_of_type(Io& io, T& own) {
  io.require({"dtype", "forward", "backward"});
  io.choice("dtype", own.dtype);
  io.object("forward", own.forward,
            [](auto& nested, auto& curve) { list_attention(nested, curve); });
  io.object("backward", own.backward,
            [](auto& nested, auto& curve) { list_attention(nested, curve); });
}
static_assert(field_count<AttentionOfType>() == 3, "list the new field above");

template <class Io, class T>
void list_move_rate(Io& io, T& rate) {
  io.require({"kind", "forward_share"});
  io.choice("kind", rate.kind);
  io.choice("dtype", rate.dtype);
  list_share(io, "forward_share", rate.forward_share);
  list_share(io, "backward_share", rate.backward_share);
}
static_assert(field_count<MoveRate>() == 4, "list the new field above");

template <class Io, class T>
void list_memory_bound(Io& io, T& curve) {
  io.require({"bandwidth_share"});
  list_microseconds(io, "start_us", curve.start);
  list_share(io, "bandwidth_share", curve.bandwidth_share);
  if (Io::kReads || !curve.rates.empty()) {
    io.objects("rates", curve.rates, names_of<MoveKind>().size() * kMostDTypes,
               [](auto& nested, auto& rate) { list_move_rate(nested, rate); });
  }
  list_fit_of(io, curve);
}
static_assert(field_count<MemoryBoundCurve>() == 4, "list the new field above");

template <class Io, class T>
void list_curves(Io& io, T& spec) {
  io.require({"gemm", "grouped_gemm", "attention_forward", "attention_backward", "memory_bound"});
  io.objects("gemm", spec.gemm, kMostDTypes,
             [](auto& nested, auto& curve) { list_gemm(nested, curve); });
  io.object("grouped_gemm", spec.grouped_gemm,
            [](auto& nested, auto& curve) { list_grouped_gemm(nested, curve); });
  io.object("attention_forward", spec.attention_forward,
            [](auto& nested, auto& curve) { list_attention(nested, curve); });
  io.object("attention_backward", spec.attention_backward,
            [](auto& nested, auto& curve) { list_attention(nested, curve); });
  if (Io::kReads || !spec.attention_by_type.empty()) {
    io.objects("attention_by_type", spec.attention_by_type, kMostDTypes,
               [](auto& nested, auto& own) { list_attention_of_type(nested, own); });
  }
  io.object("memory_bound", spec.memory_bound,
            [](auto& nested, auto& curve) { list_memory_bound(nested, curve); });
}

}  // namespace

void read_curves(ObjectReader& gpu, GpuSpec& spec) {
  FieldReader io(gpu);
  list_curves(io, spec);
  if (gpu.has("gemm") && spec.gemm.empty()) gpu.fail("gemm", "no curve", "give that of one dtype");
  for (std::size_t i = 0; i < spec.gemm.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (spec.gemm[i].dtype != spec.gemm[j].dtype) continue;
      gpu.fail("gemm", fmt::format("two curves for {}", name_of(spec.gemm[i].dtype)));
      return;
    }
  }
}

void write_curves(JsonWriter& json, const GpuSpec& spec) {
  FieldWriter io(json);
  list_curves(io, spec);
}

}  // namespace shardwise
