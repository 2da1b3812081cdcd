#include "planner/spec/report/curve_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace shardwise {
namespace {

constexpr std::string_view kCurveOf = "the curve of ";
constexpr std::string_view kDefaultOf = "default of the architecture (";

/// The method of a fit that is not measured begins with one of the two above, in every file of the
/// catalogue: "the curve of h200 (the same GH100 chip)", "default of the architecture (cdna3)".
std::pair<StandIn, std::string> stand_in_of(const FitRecord& fit) {
  const std::string_view method = fit.method;
  if (method.starts_with(kCurveOf)) {
    const std::string_view rest = method.substr(kCurveOf.size());
    const std::size_t open = std::min(rest.find(" ("), rest.size());
    std::string_view why = rest.substr(std::min(open + 2, rest.size()));
    if (why.ends_with(')')) why.remove_suffix(1);
    const bool chip = why.starts_with("the same ") && why.find(" chip") != std::string_view::npos &&
                      why.find("another power limit") == std::string_view::npos;
    return {chip ? StandIn::same_chip : StandIn::other_gpu,
            fmt::format("curve of {}{}{}", rest.substr(0, open), why.empty() ? "" : ", ", why)};
  }
  if (method.starts_with(kDefaultOf)) {
    std::string_view of = method.substr(kDefaultOf.size());
    return {StandIn::defaults, fmt::format("defaults of {}", of.substr(0, of.find(')')))};
  }
  return {StandIn::defaults, "defaults"};
}

/// One 16-bit format runs as fast as the other on every GPU of the catalogue that has both.
bool as_fast(DType asked, DType measured) {
  const auto half = [](DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16; };
  return half(asked) && half(measured);
}

}  // namespace

std::vector<BorrowedCurve> borrowed_curves(const ClusterSpec& cluster, const CurveUse& use) {
  std::vector<BorrowedCurve> borrowed;
  const auto add = [&](const char* id, std::string words, const FitRecord& fit, bool decides) {
    if (fit.measured) return;
    auto [stand_in, from] = stand_in_of(fit);
    borrowed.push_back({id, std::move(words), stand_in, std::move(from), fit.method, decides});
  };
  const GpuSpec& gpu = cluster.gpu;
  const GemmCurve* gemm = gpu.gemm_curve(use.precision);
  if (gemm == nullptr) {
    borrowed.push_back({"gemm", "GEMMs", StandIn::defaults, "defaults", "no curve", true});
  } else {
    add("gemm", "GEMMs", gemm->fit, true);
    if (gemm->fit.measured && gemm->dtype != use.precision) {
      borrowed.push_back(
          {"gemm", fmt::format("GEMMs in {}", name_of(use.precision)),
           as_fast(use.precision, gemm->dtype) ? StandIn::same_chip : StandIn::other_type,
           fmt::format("curve of {}", name_of(gemm->dtype)),
           fmt::format("the curve of {}", name_of(gemm->dtype)), true});
    }
  }
  if (use.experts) add("grouped_gemm", "experts' GEMMs", gpu.grouped_gemm.fit, false);
  add("attention.forward", "attention", gpu.attention_forward.fit, false);
  add("attention.backward", "attention gradients", gpu.attention_backward.fit, false);
  add("memory_bound", "memory-bound kernels", gpu.memory_bound.fit, false);
  std::int64_t inside = 1;  // ranks that reach each other without this tier
  for (const LinkTier& tier : cluster.tiers) {
    if (tier.domain_size > inside && cluster.gpus > inside) {
      add("collectives", tier.name + " links", tier.collectives.fit, true);
    }
    inside = std::max(inside, tier.domain_size);
  }
  return borrowed;
}

bool counts_as_measured(std::span<const BorrowedCurve> borrowed) {
  return std::ranges::none_of(borrowed, [](const BorrowedCurve& each) {
    return each.decides && each.stand_in != StandIn::same_chip;
  });
}

std::string stand_ins_text(std::span<const BorrowedCurve> borrowed) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const BorrowedCurve& each : borrowed) {
    auto group = std::ranges::find(groups, each.from, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {each.from, {}});
    group->second.push_back(each.words);
  }
  std::vector<std::string> parts;
  for (const auto& [from, names] : groups) {
    parts.push_back(fmt::format("{} ({})", fmt::join(names, ", "), from));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<Assumption> curves_assumption(const ClusterSpec& cluster, const CurveUse& use) {
  std::vector<BorrowedCurve> borrowed = borrowed_curves(cluster, use);
  std::erase_if(borrowed,
                [](const BorrowedCurve& each) { return each.stand_in == StandIn::same_chip; });
  if (borrowed.empty()) return std::nullopt;
  return Assumption{
      "curves.not_measured",
      fmt::format("not measured on {}: {}", cluster.gpu.name, stand_ins_text(borrowed)),
      "docs/compute.md and docs/collectives.md"};
}

}  // namespace shardwise
