#include <fmt/format.h>

#include <string_view>

#include "planner/cost/collectives/collective_candidates.h"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, 7> kAlgorithms = {"ring",    "tree", "nvls",    "nvls_tree",
                                                         "collnet", "pat",  "pairwise"};
constexpr std::array<std::string_view, 3> kProtocolNames = {"LL", "LL128", "Simple"};

std::string_view name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}
std::string_view name_of(Protocol protocol) {
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

std::string line(const CollectiveCandidate& candidate) {
  return fmt::format("{} {}: launch {} + steps {} + transfer {} + pipeline {} = {}",
                     name_of(candidate.algorithm), name_of(candidate.protocol),
                     microseconds(candidate.launch), microseconds(candidate.steps),
                     microseconds(candidate.transfer), microseconds(candidate.pipeline),
                     microseconds(candidate.seconds()));
}

std::string line(const Crossing& at) {
  const CollectiveCoefficients& c = at.tier->collectives.coefficients;
  return fmt::format(
      "{}: {:g} ranks in each of {:g} domains, {:g} hops of {:.4g} us (LL {:g}, LL128 {:g}, Simple "
      "{:g} times), {:.4g} GB/s out of a domain (LL {:g}, LL128 {:g}, Simple {:g} of it)",
      at.tier->name, at.ranks, at.domains, at.hops, at.tier->latency.value() * 1e6, c.ll_step,
      c.ll128_step, c.simple_step, at.rate / 1e9, c.ll_share, c.ll128_share, c.simple_share);
}

std::string source(const LinkTier& tier) {
  const CollectiveCurve& curve = tier.collectives;
  if (!curve.fit.measured) {
    return fmt::format("{}: {}, not measured: {}", tier.name, curve.name, curve.fit.method);
  }
  return fmt::format(
      "{}: {}, fitted to {} points of {}, median error {:.1f} %, 95th percentile "
      "{:.1f} % on points left out",
      tier.name, curve.name, curve.fit.points, curve.fit.fitted_on, 100 * curve.fit.median_error,
      100 * curve.fit.p95_error);
}

}  // namespace

CollectiveExplanation explain_collective(const ClusterSpec& cluster, CollectiveKind kind,
                                         Bytes bytes, const GroupShape& group) {
  CollectiveExplanation explanation;
  explanation.time = collective_time(cluster, kind, bytes, group);
  explanation.bound = collective_bound(cluster, kind, bytes, group);
  explanation.algorithm = "none";
  if (group.ranks <= 1 || bytes.value() <= 0) return explanation;

  const GroupLinks links = links_of(cluster, group);
  const auto size = static_cast<double>(bytes.value());
  const Candidates found = candidates(links, kind, size);
  const CollectiveCandidate& best = found.best();
  explanation.algorithm = name_of(best.algorithm);
  explanation.protocol = name_of(best.protocol);
  explanation.busbw_gb_per_s =
      bus_factor(kind, group.ranks) * size / explanation.time.value() / 1e9;
  explanation.steps.push_back(
      fmt::format("{} of {} bytes among {} ranks", name_of(kind), bytes.value(), group.ranks));
  for (const Crossing& at : links) explanation.steps.push_back(line(at));
  for (std::size_t i = 0; i < found.count; ++i) explanation.steps.push_back(line(found.all[i]));
  explanation.steps.push_back(fmt::format("bound {}: the fastest, but not below it: {}",
                                          microseconds(explanation.bound.value()),
                                          microseconds(explanation.time.value())));
  for (const Crossing& at : links) {
    explanation.sources.push_back(fmt::format("{}: {}", at.tier->name, at.tier->source));
    explanation.sources.push_back(source(*at.tier));
  }
  return explanation;
}

}  // namespace shardwise
