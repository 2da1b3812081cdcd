#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/report.h"

namespace shardwise {

/// The names of an enumeration's values in their order, as JSON and flags spell them.
template <class E>
inline constexpr std::array<std::string_view, 0> kNamesOf;
template <>
inline constexpr std::array<std::string_view, 6> kNamesOf<Axis> = {
    "tp", "cp", "ep", "dp_shard", "dp_replicate", "pp"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<Recompute> = {"none", "selective",
                                                                        "full"};
template <>
inline constexpr std::array<std::string_view, 8> kNamesOf<PipelineSchedule> = {
    "one_f_one_b", "gpipe", "looped_bfs", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipe_v"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<ContextParallelKind> = {
    "ring", "all_gather", "ulysses"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<ActivationFunction> = {
    "silu", "relu", "gelu_erf", "gelu_tanh", "other"};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<RopeScaling> = {"none", "linear",
                                                                          "llama3", "other"};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<AttentionKernel> = {
    "flash", "flash1", "cudnn", "materialised"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<LossKernel> = {
    "by_engine", "materialised", "fused", "fused_fp32", "chunked"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<RmsNormKernel> = {"by_engine", "fused",
                                                                            "composite"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<AdamwKernel> = {"fused", "foreach",
                                                                          "for_loop"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<Kernels> = {
    "by_engine", "eager", "compiled", "transformer_engine", "planned"};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<TpOverlap> = {"by_engine", "none",
                                                                        "backward", "pipelined"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<Fp8Recipe> = {
    "delayed", "tensorwise", "rowwise", "rowwise_wide_gradient", "block"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<SavedFormat> = {"as_computed", "fp8",
                                                                          "e5m6"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<ExpertDispatch> = {"all_to_all",
                                                                             "deduplicated"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<Optimizer> = {"adamw", "sgd",
                                                                        "sgd_momentum"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<GemmBasis> = {"measured", "interpolated",
                                                                        "extrapolated"};
template <>
inline constexpr std::array<std::string_view, 11> kNamesOf<MoveKind> = {
    "copy",      "layer_norm", "rms_norm",  "gelu",          "swiglu", "rope",
    "embedding", "loss",       "optimizer", "gradient_norm", "cast"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<InNetwork> = {"none", "nvls", "sharp"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<Wiring> = {"switched", "mesh"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<MainWeights> = {"separate", "parameter"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<GatherBuffer> = {
    "in_place", "element_queue", "double_buffer", "copy_out", "rate_limited"};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<GradientBuffer> = {
    "contiguous", "unit_queue", "copy_in"};
template <>
inline constexpr std::array<std::string_view, 2> kNamesOf<AllocatorKind> = {"caching", "arena"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<ShardPadding> = {"bucket", "unit", "row",
                                                                           "flat", "tensor"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<TpSplit> = {"none", "column", "row",
                                                                      "vocab", "heads"};
template <>
inline constexpr std::array<std::string_view, 11> kNamesOf<OpKind> = {
    "embedding", "gemm",   "attention", "norm",    "activation", "rope",
    "residual",  "router", "dispatch",  "combine", "loss"};
template <>
inline constexpr std::array<std::string_view, 5> kNamesOf<LayerRole> = {
    "embedding", "encoder_block", "block", "head", "mtp"};
template <>
inline constexpr auto kNamesOf<MemoryCategory> = kMemoryCategoryNames;
template <>
inline constexpr auto kNamesOf<MemoryPhase> = kMemoryPhaseNames;
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<Fit> = {"fits", "at_risk",
                                                                  "does_not_fit"};

/// Compilers write the value of a template argument as "= shardwise::Axis::pp" when it has a name,
/// as "= (shardwise::Axis)6" when it has none.
template <auto kValue>
consteval bool has_name() {
  return std::string_view(__PRETTY_FUNCTION__).find("= (") == std::string_view::npos;
}
template <class E>
inline constexpr bool kAllNamed = !has_name<static_cast<E>(kNamesOf<E>.size())>();

template <class E>
requires(kNamesOf<E>.size() > 0) constexpr std::string_view name_of(E value) {
  static_assert(kAllNamed<E>, "a value was added to the enumeration: name it above");
  return kNamesOf<E>[static_cast<std::size_t>(value)];
}

template <class E>
requires(kNamesOf<E>.size() > 0) constexpr std::optional<E> from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNamesOf<E>.size(); ++i) {
    if (kNamesOf<E>[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

/// All values of an enumeration in their order.
template <class E>
requires(kNamesOf<E>.size() > 0) std::vector<E> values_of() {
  std::vector<E> values;
  for (std::size_t i = 0; i < kNamesOf<E>.size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

/// All names of an enumeration, for ObjectReader::choice.
template <class E>
requires(kNamesOf<E>.size() > 0) std::vector<std::string_view> names_of() {
  return {kNamesOf<E>.begin(), kNamesOf<E>.end()};
}

}  // namespace shardwise
