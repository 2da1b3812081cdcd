#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "planner/spec/json/fields.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

inline constexpr auto kLayoutFields = std::tuple(
    &Layout::tp, &Layout::cp, &Layout::pp, &Layout::vpp, &Layout::first_stage_layers,
    &Layout::last_stage_layers, &Layout::ep, &Layout::etp, &Layout::dp_shard, &Layout::dp_replicate,
    &Layout::micro_batch_size, &Layout::zero_stage, &Layout::sequence_parallel,
    &Layout::outer_shards_optimizer, &Layout::reshard_after_forward,
    &Layout::reduce_every_microbatch, &Layout::offload_optimizer, &Layout::store_param_remainders,
    &Layout::offload_activations, &Layout::double_buffer, &Layout::fp32_gradients,
    &Layout::overlap_grad_reduce, &Layout::overlap_param_gather, &Layout::ddp_bucket_size,
    &Layout::ddp_pad_buckets_for_high_nccl_busbw, &Layout::recompute, &Layout::recompute_interval,
    &Layout::schedule, &Layout::cp_kind, &Layout::order);
static_assert(std::tuple_size_v<decltype(kLayoutFields)> == field_count<Layout>(),
              "list the new field above");

/// Layouts as columns, one for each field: column<&Layout::tp>()[row]. Truth values are 0 or 1.
/// Several threads may set different rows.
class LayoutColumns {
 public:
  std::size_t rows() const { return std::get<0>(columns_).size(); }
  void resize(std::size_t rows) {
    for_each([&](auto, auto& values) { values.resize(rows); });
  }
  void set(std::size_t row, const Layout& layout) {
    for_each([&](auto field, auto& values) { values[row] = layout.*field; });
  }
  Layout operator[](std::size_t row) const {
    Layout layout;
    for_each([&](auto field, const auto& values) {
      layout.*field = static_cast<std::remove_reference_t<decltype(layout.*field)>>(values[row]);
    });
    return layout;
  }
  template <auto kField>
  auto column() const {
    return std::span(std::get<place_of<kField>()>(columns_));
  }

 private:
  /// A vector of bool packs several rows into a byte.
  template <class T>
  using Column = std::vector<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;
  template <class... Field>
  static std::tuple<Column<Field>...> columns_of(const std::tuple<Field Layout::*...>&);

  template <auto kField>
  static consteval std::size_t place_of() {
    return []<std::size_t... kPlace>(std::index_sequence<kPlace...>) {
      std::size_t found = sizeof...(kPlace);
      const auto is = [](auto field) {
        if constexpr (std::is_same_v<decltype(field), decltype(kField)>) return field == kField;
        return false;
      };
      ((is(std::get<kPlace>(kLayoutFields)) ? found = kPlace : found), ...);
      return found;
    }
    (kPlaces);
  }
  static constexpr auto kPlaces =
      std::make_index_sequence<std::tuple_size_v<decltype(kLayoutFields)>>();

  template <class Columns, class Use, std::size_t... kPlace>
  static void each_of(Columns& columns, Use use, std::index_sequence<kPlace...>) {
    (use(std::get<kPlace>(kLayoutFields), std::get<kPlace>(columns)), ...);
  }
  template <class Use>
  void for_each(Use use) {
    each_of(columns_, use, kPlaces);
  }
  template <class Use>
  void for_each(Use use) const {
    each_of(columns_, use, kPlaces);
  }

  decltype(columns_of(kLayoutFields)) columns_;
};

}  // namespace shardwise
