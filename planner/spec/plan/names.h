#pragma once

#include <array>
#include <string_view>

#include "planner/spec/machine/machine_names.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/enum_names.h"

namespace shardwise {

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
inline constexpr std::array<std::string_view, 6> kNamesOf<ActivationFunction> = {
    "silu", "relu", "gelu_erf", "gelu_tanh", "gelu_new", "other"};
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
inline constexpr std::array<std::string_view, 6> kNamesOf<AdamwKernel> = {
    "fused", "foreach", "for_loop", "bnb_8bit", "paged", "paged_8bit"};
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

}  // namespace shardwise
