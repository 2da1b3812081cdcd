#include "simulator/comparison/kind_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "simulator/comparison/predicted_work.h"

namespace shardwise::sim {

std::vector<KindSum> kind_sums(std::span<const ComparedTime> operations,
                               const StepProgram& program) {
  const auto kinds = kinds_by_name(program);
  std::map<std::tuple<bool, WorkKind, StepPhase>, KindSum> sums;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const ComparedTime& operation = operations[i];
    const auto found = kinds.find(operation.name);
    const bool known = found != kinds.end();
    const KindAndPhase of = known ? found->second : KindAndPhase{};
    KindSum& sum = sums[{known, of.kind, of.phase}];
    sum.known = known;
    sum.kind = of.kind;
    sum.phase = of.phase;
    sum.first += operation.first;
    sum.second += operation.second;
    sum.in_first = sum.in_first || operation.in_first;
    sum.in_second = sum.in_second || operation.in_second;
    sum.operations.push_back(i);
  }
  std::vector<KindSum> sorted;
  sorted.reserve(sums.size());
  for (auto& [key, sum] : sums) sorted.push_back(std::move(sum));
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const KindSum& sum) { return std::abs(sum.difference().value()); });
  return sorted;
}

}  // namespace shardwise::sim
