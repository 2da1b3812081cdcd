#include "planner/spec/report/memory_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace shardwise {
namespace {

using testing::Each;

/// A power of two in each category: no two sets of them have the same sum.
Ledger powers() {
  Ledger ledger;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) ledger.bytes[c] = std::int64_t{1} << c;
  return ledger;
}

TEST(MemoryLabels, AreInTheOrderOfTheCategories) {
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    EXPECT_EQ(kMemoryLabels[c].category, static_cast<MemoryCategory>(c));
  }
}

TEST(MemoryLabels, AreTheKeysInWords) {
  for (const MemoryLabel& each : kMemoryLabels) {
    std::string words(name_of(each.category));
    std::ranges::replace(words, '_', ' ');
    EXPECT_EQ(each.label, words);
  }
}

TEST(MemoryGroups, PartitionTheCategories) {
  std::array<std::size_t, kMemoryGroups> categories{};
  for (const MemoryLabel& each : kMemoryLabels)
    ++categories.at(static_cast<std::size_t>(each.group));
  EXPECT_THAT(categories, Each(testing::Gt(0U)));
  EXPECT_EQ(std::accumulate(categories.begin(), categories.end(), std::size_t{0}),
            kMemoryCategories);
}

TEST(MemoryGroups, HoldEachBitOfALedgerOnce) {
  const Ledger ledger = powers();
  std::int64_t bits = 0;
  for (const Bytes bytes : grouped(ledger)) {
    EXPECT_EQ(bits & bytes.value(), 0) << "a category is in two groups";
    bits |= bytes.value();
  }
  EXPECT_EQ(Bytes(bits), ledger.total());
}

TEST(MemoryGroups, LeaveOutsideWhatTheAllocatorDoesNotReserve) {
  const Ledger ledger = powers();
  EXPECT_EQ(grouped(ledger)[static_cast<std::size_t>(MemoryGroup::outside)],
            ledger.total() - ledger.reserved());
}

TEST(MemoryGroups, HaveLabelsOfTheirOwn) {
  const std::set<std::string_view> labels(kMemoryGroupLabels.begin(), kMemoryGroupLabels.end());
  EXPECT_EQ(labels.size(), kMemoryGroups);
  EXPECT_EQ(labels.count(""), 0U);
}

}  // namespace
}  // namespace shardwise
