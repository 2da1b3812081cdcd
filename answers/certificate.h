#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "answers/plan_answer.h"
#include "answers/plan_question.h"

namespace shardwise::sim {

/// Proof about the best row of an answer: how much faster, simulated, any layout of the
/// question's space may be that fits.
struct Certificate {
  /// Most by which the best row takes longer than any layout: its step / the shortest - 1.
  double faster = 0;
  std::int64_t valid = 0;      // layouts of the space: legal ones of all engines and counts of GPUs
  std::int64_t simulated = 0;  // of those, all whose bound is below what is proved
  std::optional<PlanRow> fastest;  // simulated, where it is faster than the answer's best row
};

/// A certificate wants to prove this: no layout is more than half a per cent faster.
inline constexpr double kProved = 0.005;

/// Bounds the simulated step of every layout that fits from below, and simulates all whose bound
/// leaves it open whether they are kProved faster than the best row. Where these are too many it
/// simulates those with the lowest bounds, and proves less. Equal for any number of threads.
/// docs/search.md, "What is proved".
/// \returns nothing where rows do not rank by simulated steps, or not by their time alone
std::optional<Certificate> certify(const PlanQuestion& question, const PlanAnswer& answer,
                                   const SayPlanning& say = {});

/// In words: "no layout that fits is more than 0.5 % faster: …".
std::string certificate_words(const Certificate& certificate);

}  // namespace shardwise::sim
