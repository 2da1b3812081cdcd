#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/enum_names.h"

namespace shardwise {

/// Stand-in for a curve that was not measured on the GPU or the links themselves.
enum class StandIn : std::uint8_t {
  same_chip,   // measured on another GPU with the same chip at the same power limit
  other_gpu,   // measured on another chip, or at another power limit
  other_type,  // measured in another number format
  defaults,    // of the architecture, or of the collective library
};
template <>
inline constexpr std::array<std::string_view, 4> kNamesOf<StandIn> = {"same_chip", "other_gpu",
                                                                      "other_type", "default"};

/// A curve that a job uses and that was not measured.
struct BorrowedCurve {
  std::string id;     // "gemm", "attention.backward", "collectives"
  std::string words;  // "attention gradients", "infiniband links"
  StandIn stand_in = StandIn::defaults;
  std::string from;     // "curve of h200, the same GH100 chip"
  std::string method;   // of the fit, in full
  bool decides = true;  // GEMMs and links: most of a step. Others never hide a machine
};

/// Use that a job makes of a cluster's curves.
struct CurveUse {
  DType precision = DType::bf16;
  bool experts = false;  // grouped GEMMs too
};

/// Every curve that a job on all cluster.gpus GPUs uses and that was not measured: kernels, and the
/// tiers of links that some of its ranks need to reach each other. docs/compute.md.
std::vector<BorrowedCurve> borrowed_curves(const ClusterSpec& cluster, const CurveUse& use);

/// A machine counts as measured when its GEMMs and links were, on it or on the same chip.
bool counts_as_measured(std::span<const BorrowedCurve> borrowed);

/// "GEMMs, attention (defaults of cdna3); xgmi links (defaults)". Empty for no curve.
std::string stand_ins_text(std::span<const BorrowedCurve> borrowed);

/// Sentence of a first screen on times that rest on another chip or on defaults, id
/// "curves.not_measured"; nothing when all curves were measured on this chip.
std::optional<Assumption> curves_assumption(const ClusterSpec& cluster, const CurveUse& use);

}  // namespace shardwise
