#include "planner/cost/memory/sub_groups.h"

#include <algorithm>

#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

/// Sub-groups of parameters that the same ranks share.
class SubGroups {
 public:
  explicit SubGroups(std::int64_t size) : size_(size) {}

  void add(std::int64_t each, std::int64_t count) {
    while (each > 0 && count > 0) {
      const std::int64_t taken = std::min(count, ceil_div(size_ - open_, each));
      count -= taken;
      open_ += taken * each;
      tensors_ += taken;
      sizes_.largest = std::max(sizes_.largest, open_);
      if (tensors_ > 1) sizes_.joined = std::max(sizes_.joined, open_);
      if (open_ >= size_) open_ = tensors_ = 0;
    }
  }
  const SubGroupSizes& sizes() const { return sizes_; }

 private:
  std::int64_t size_;
  std::int64_t open_ = 0;  // elements of the one that is being filled
  std::int64_t tensors_ = 0;
  SubGroupSizes sizes_;
};

}  // namespace

SubGroupSizes sub_group_sizes(const StageParts& parts, const ShardRanks& ranks, std::int64_t size) {
  SHARDWISE_CHECK(size > 0, "a sub-group has elements");
  SubGroups dense(size);
  SubGroups apart(size);
  SubGroups& routed = ranks.routed == ranks.dense ? dense : apart;
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    for (std::int32_t layer = 0; layer < run.count; ++layer) {
      for (const TensorGroup& t : run.layer->parameters.in_order) {
        const std::int64_t ways = t.routed ? ranks.routed : ranks.dense;
        (t.routed ? routed : dense).add(ceil_div(t.rows * t.row_elements, ways), t.count);
      }
    }
  }
  dense.add(ceil_div(parts.copied, ranks.dense), 1);
  return {std::max(dense.sizes().largest, apart.sizes().largest),
          std::max(dense.sizes().joined, apart.sizes().joined)};
}

}  // namespace shardwise
