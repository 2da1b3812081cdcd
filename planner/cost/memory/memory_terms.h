#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/memory/amount.h"
#include "planner/cost/memory/memory.h"
#include "planner/spec/program/ledger.h"

namespace shardwise {

/// One summand of a ledger: what it is, and the two factors it is the product of.
struct MemoryTerm {
  MemoryCategory category = MemoryCategory::weights;
  std::uint8_t phases = 0;   // in which it exists, one bit a MemoryPhase
  const char* formula = "";  // the two factors in words, as docs/memory.md has them
  Amount amount;
  bool in(MemoryPhase phase) const { return (phases >> static_cast<unsigned>(phase) & 1U) != 0; }
};

/// All summands of a stage's ledgers but the allocator's slack: stage_memory() adds these up and
/// nothing else, so what --explain prints of them is what the ledger is made of.
class StageTerms {
 public:
  void add(MemoryCategory category, std::uint8_t phases, const char* formula, const Amount& amount);
  std::span<const MemoryTerm> all() const { return terms_; }

 private:
  std::vector<MemoryTerm> terms_;
};
StageTerms stage_terms(const StageParts& parts, const StageContext& context);

}  // namespace shardwise
