#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/spec/program/ledger.h"

namespace shardwise {

/// Categories of memory that people compare as one: 17 are too many for a picture.
enum class MemoryGroup : std::uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  staged,   // whole for a while: gathered parameters, gradients before their reduction
  working,  // temporaries, and what the allocator keeps of those that are gone
  outside,  // the framework's allocator
};
inline constexpr std::size_t kMemoryGroups = 7;
inline constexpr std::array<std::string_view, kMemoryGroups> kMemoryGroupLabels = {
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "gathered and staged",
    "working",
    "outside the allocator"};
constexpr std::string_view label_of(MemoryGroup group) {
  return kMemoryGroupLabels[static_cast<std::size_t>(group)];
}

/// Name of a category for people, and the group whose bytes it adds to.
struct MemoryLabel {
  MemoryCategory category;
  std::string_view label;
  MemoryGroup group;
};

/// In the order of MemoryCategory.
inline constexpr std::array<MemoryLabel, kMemoryCategories> kMemoryLabels = {{
    {MemoryCategory::weights, "weights", MemoryGroup::weights},
    {MemoryCategory::main_weights, "main weights", MemoryGroup::weights},
    {MemoryCategory::gradients, "gradients", MemoryGroup::gradients},
    {MemoryCategory::main_gradients, "main gradients", MemoryGroup::gradients},
    {MemoryCategory::optimizer_moments, "optimizer moments", MemoryGroup::optimizer},
    {MemoryCategory::gathered_weights, "gathered weights", MemoryGroup::staged},
    {MemoryCategory::gradient_staging, "gradient staging", MemoryGroup::staged},
    {MemoryCategory::activations, "activations", MemoryGroup::activations},
    {MemoryCategory::activations_in_flight, "activations in flight", MemoryGroup::activations},
    {MemoryCategory::working, "working", MemoryGroup::working},
    {MemoryCategory::logits_and_loss, "logits and loss", MemoryGroup::working},
    {MemoryCategory::recompute_scratch, "recompute scratch", MemoryGroup::working},
    {MemoryCategory::optimizer_scratch, "optimizer scratch", MemoryGroup::working},
    {MemoryCategory::library_workspace, "library workspace", MemoryGroup::working},
    {MemoryCategory::communicator, "communicator", MemoryGroup::outside},
    {MemoryCategory::runtime_context, "runtime context", MemoryGroup::outside},
    {MemoryCategory::allocator_slack, "allocator slack", MemoryGroup::working},
}};
constexpr std::string_view label_of(MemoryCategory category) {
  return kMemoryLabels[static_cast<std::size_t>(category)].label;
}
constexpr MemoryGroup group_of(MemoryCategory category) {
  return kMemoryLabels[static_cast<std::size_t>(category)].group;
}

/// Headings of a table of phases. A pass is forward and backward, a step is the optimizer's.
inline constexpr std::array<std::string_view, kMemoryPhases> kMemoryPhaseLabels = {
    "after init", "first pass", "first step", "pass", "step"};
constexpr std::string_view label_of(MemoryPhase phase) {
  return kMemoryPhaseLabels[static_cast<std::size_t>(phase)];
}

/// A ledger's bytes by group: they sum to its total.
using GroupedBytes = std::array<Bytes, kMemoryGroups>;
constexpr GroupedBytes grouped(const Ledger& ledger) {
  GroupedBytes bytes{};
  for (const MemoryLabel& each : kMemoryLabels) {
    bytes[static_cast<std::size_t>(each.group)] += Bytes(ledger[each.category]);
  }
  return bytes;
}

}  // namespace shardwise
