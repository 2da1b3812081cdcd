#include "simulator/clock/repeated_part.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "planner/recorded/rendezvous.h"

namespace shardwise::sim {
namespace {

bool alike(const CostPrice& a, const CostPrice& b) {
  return a.seconds == b.seconds && a.launches == b.launches && a.tax.gemm == b.tax.gemm &&
         a.tax.other == b.tax.other && a.excess == b.excess && a.gemm_share == b.gemm_share &&
         a.moved_share == b.moved_share && a.link_share == b.link_share &&
         a.memory_share == b.memory_share && a.threads == b.threads && a.room == b.room &&
         a.inside.begin == b.inside.begin && a.inside.end == b.inside.end && a.rest == b.rest;
}

/// Prices, and who meets in what is priced.
bool alike(const StageProgram& a, std::span<const CostPrice> of_a, const StageProgram& b,
           std::span<const CostPrice> of_b) {
  const auto same_price = [](const CostPrice& x, const CostPrice& y) { return alike(x, y); };
  const auto same_ranks = [](const OpCost& x, const OpCost& y) {
    return x.collectives == y.collectives;
  };
  return std::ranges::equal(of_a, of_b, same_price) &&
         std::ranges::equal(a.costs, b.costs, same_ranks);
}

/// Operations of two programs, but for what they wait for.
bool alike(const ProgramOp& a, const ProgramOp& b) {
  return a.role == b.role && a.stream == b.stream && a.pass == b.pass && a.routed == b.routed &&
         a.chunk == b.chunk && a.layer == b.layer && a.part == b.part && a.cost == b.cost &&
         a.peer == b.peer && (a.message < 0) == (b.message < 0);
}

class Comparison {
 public:
  Comparison(const StageProgram& few, const StageProgram& more) : few_(few), more_(more) {}

  std::optional<RepeatedPart> find() {
    const std::size_t count = few_.operations.size();
    if (more_.operations.size() <= count) return std::nullopt;
    const std::size_t length = more_.operations.size() - count;
    std::size_t end = 0;
    while (end < count && alike_at(end, end)) ++end;
    std::size_t begin = count;
    while (begin > 0 && alike_at(begin - 1, begin - 1 + length)) --begin;
    begin = std::max<std::size_t>(begin, after_waited_);
    if (begin + 2 * length > end || meets_stages(begin, end)) return std::nullopt;
    return RepeatedPart{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
                        static_cast<std::uint32_t>(length)};
  }

 private:
  /// Operation i of the shorter program and j of the longer. Notes what both wait for however far
  /// they are apart.
  bool alike_at(std::size_t i, std::size_t j) {
    const ProgramOp& a = few_.operations[i];
    const ProgramOp& b = more_.operations[j];
    if (!alike(a, b)) return false;
    const std::span<const std::uint32_t> of_a = few_.of(a.waits);
    const std::span<const std::uint32_t> of_b = more_.of(b.waits);
    if (of_a.size() != of_b.size()) return false;
    for (std::size_t w = 0; w < of_a.size(); ++w) {
      if (of_a[w] + (j - i) == of_b[w]) continue;
      if (of_a[w] != of_b[w]) return false;
      after_waited_ = std::max(after_waited_, of_a[w] + 1);
    }
    return true;
  }

  bool meets_stages(std::size_t begin, std::size_t end) const {
    const auto part = std::span(few_.operations).subspan(begin, end - begin);
    return std::ranges::any_of(part, [&](const ProgramOp& op) {
      const CollectiveWork* work = few_.communication(op);
      return op.message < 0 && work != nullptr && crosses_stages(work->group);
    });
  }

  const StageProgram& few_;
  const StageProgram& more_;
  std::uint32_t after_waited_ = 0;
};

/// Whether each stage receives from another in the order in which that one sends.
bool in_order(const StepProgram& program) {
  const std::size_t stages = program.stages.size();
  std::vector<std::vector<std::int32_t>> sent(stages * stages);
  std::vector<std::vector<std::int32_t>> received(stages * stages);
  for (std::size_t s = 0; s < stages; ++s) {
    for (const ProgramOp& op : program.stages[s].operations) {
      if (op.message < 0) continue;
      const auto peer = static_cast<std::size_t>(op.peer);
      (op.stream == Stream::send ? sent[s * stages + peer] : received[peer * stages + s])
          .push_back(op.message);
    }
  }
  return sent == received;
}

}  // namespace

std::optional<std::vector<RepeatedPart>> repeated_parts(const StepProgram& few,
                                                        const Prices& few_prices,
                                                        const StepProgram& more,
                                                        const Prices& more_prices) {
  if (few.stages.size() != more.stages.size()) return std::nullopt;
  std::vector<RepeatedPart> parts;
  for (std::size_t s = 0; s < few.stages.size(); ++s) {
    if (!alike(few.stages[s], few_prices[s], more.stages[s], more_prices[s])) return std::nullopt;
    const std::optional<RepeatedPart> part = Comparison(few.stages[s], more.stages[s]).find();
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  if (!in_order(few) || !in_order(more)) return std::nullopt;
  return parts;
}

}  // namespace shardwise::sim
