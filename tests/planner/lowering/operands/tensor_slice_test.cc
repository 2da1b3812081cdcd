#include "planner/lowering/operands/tensor_slice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/cost/layer/key_heads.h"
#include "planner/cost/layer/layer_parameters.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"

namespace shardwise {
namespace {

Layout over(std::int32_t tp) {
  Layout layout;
  layout.tp = tp;
  return layout;
}

/// The numbers in the whole tensor of the elements of a rank's part; -1 of zeros.
std::vector<std::int64_t> part(const TensorCut& cut, int rank, std::int64_t first,
                               std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for_slice_runs(cut, rank, first, count, [&](const SliceRun& run) {
    EXPECT_EQ(run.part, first + std::ssize(numbers));
    for (std::int64_t i = 0; i < run.count; ++i) {
      numbers.push_back(run.whole < 0 ? -1 : run.whole + i);
    }
  });
  EXPECT_EQ(std::ssize(numbers), count);
  return numbers;
}

/// Each element of the whole tensor is where parts have it, in the order of the part.
void expect_found_again(const TensorCut& cut, std::int64_t elements,
                        const std::vector<std::vector<std::int64_t>>& parts) {
  std::vector<std::int64_t> next(parts.size(), 0);
  std::int64_t at = 0;
  const auto visit = [&](const PartRun& run) {
    const auto rank = static_cast<std::size_t>(run.rank);
    EXPECT_EQ(run.whole, at);
    EXPECT_EQ(run.part, next[rank]);
    for (std::int64_t i = 0; i < run.count; ++i) {
      EXPECT_EQ(parts[rank][static_cast<std::size_t>(run.part + i)], at + i);
    }
    at += run.count;
    next[rank] += run.count;
  };
  const std::int64_t some = elements / 3 + 1;
  for_part_runs(cut, 0, some, visit);
  for_part_runs(cut, some, elements - some, visit);
  EXPECT_EQ(at, elements);
}

// Whatever the model and the number of ranks, and from wherever a rank begins.
TEST(TensorSlice, CoversEveryTensorOnce) {
  const EngineProfile engine = *find_engine("shardwise");
  for (const char* name : {"gpt2-tiny", "llama-tiny", "qwen3-tiny"}) {
    const ModelSpec model = *load_model(name);
    for (const std::int32_t tp : {2, 4}) {
      if (model.num_attention_heads % tp != 0 || model.num_key_value_heads % tp != 0) continue;
      for (const LayerSpec& kind : model.kinds) {
        for (std::int32_t p = 0; p < static_cast<std::int32_t>(kind.parameters.size()); ++p) {
          const ParameterSpec& spec = kind.parameters[static_cast<std::size_t>(p)];
          const TensorCut cut = tensor_cut(kind, p, engine, over(tp));
          EXPECT_EQ(cut.cut(), spec.tp_dim >= 0) << spec.name;
          if (!cut.cut()) continue;
          const std::int64_t elements = local_tensor(spec, engine, over(tp)).elements();
          std::vector<int> met(static_cast<std::size_t>(spec.elements()), 0);
          std::vector<std::vector<std::int64_t>> parts;
          for (std::int32_t rank = 0; rank < tp; ++rank) {
            const std::int64_t half = elements / 2 + 1;
            std::vector<std::int64_t> numbers = part(cut, rank, 0, half);
            const std::vector<std::int64_t> rest = part(cut, rank, half, elements - half);
            numbers.insert(numbers.end(), rest.begin(), rest.end());
            for (const std::int64_t each : numbers) {
              if (each >= 0) ++met[static_cast<std::size_t>(each)];
            }
            const auto zero = std::ranges::find(numbers, -1);
            EXPECT_EQ(zero - numbers.begin(), filled_part(cut, rank)) << spec.name;
            parts.push_back(std::move(numbers));
          }
          expect_found_again(cut, spec.elements(), parts);
          EXPECT_EQ(std::ranges::count(met, 1), spec.elements()) << name << " " << spec.name;
        }
      }
    }
  }
}

// Queries, keys and values of one matrix [in, out]: a rank has its heads of each.
TEST(TensorSlice, TakesWholeHeadsOfOneMatrixOfAll) {
  const ModelSpec model = *load_model("gpt2-tiny");
  for (const LayerSpec& kind : model.kinds) {
    if (kind.role != LayerRole::block) continue;
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(kind.parameters.size()); ++p) {
      const ParameterSpec& spec = kind.parameters[static_cast<std::size_t>(p)];
      if (!spec.name.ends_with("attn.c_attn.weight")) continue;
      const TensorCut cut = tensor_cut(kind, p, *find_engine("shardwise"), over(2));
      EXPECT_EQ(cut.pieces, (std::vector<std::int64_t>{128, 128, 128}));
      const std::vector<std::int64_t> row = part(cut, 1, 192, 192);  // of the second input
      for (std::int64_t i = 0; i < 192; ++i) {
        EXPECT_EQ(row[static_cast<std::size_t>(i)], 384 + i / 64 * 128 + 64 + i % 64);
      }
    }
  }
}

// Four heads of keys over eight ranks of our engine: two neighbours have one, whole. Another engine
// has a part of a head a rank.
TEST(TensorSlice, GivesNeighboursTheSameHeadWhereRanksAreMore) {
  const ModelSpec model = *load_model("llama-tiny");
  int found = 0;
  for (const LayerSpec& kind : model.kinds) {
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(kind.parameters.size()); ++p) {
      const ParameterSpec& spec = kind.parameters[static_cast<std::size_t>(p)];
      const EngineProfile& ours = *find_engine("shardwise");
      const EngineProfile& theirs = *find_engine("megatron_ddp");
      const bool of_heads =
          spec.name.ends_with("k_proj.weight") || spec.name.ends_with("v_proj.weight");
      EXPECT_EQ(parameter_copies(kind, p, ours, over(8)), of_heads ? 2 : 1) << spec.name;
      EXPECT_EQ(parameter_copies(kind, p, ours, over(4)), 1) << spec.name;
      EXPECT_EQ(parameter_copies(kind, p, theirs, over(8)), 1) << spec.name;
      if (!of_heads) continue;
      ++found;
      const TensorCut cut = tensor_cut(kind, p, ours, over(8));
      EXPECT_EQ(cut.ways, 4);
      EXPECT_EQ(cut.part_of(5), 2);
      EXPECT_TRUE(cut.leads(4));
      EXPECT_FALSE(cut.leads(5));
      const std::int64_t head = std::int64_t{model.head_dim} * model.hidden_size;
      EXPECT_EQ(local_tensor(spec, ours, over(8), 2).elements(), head);
      EXPECT_EQ(filled_part(cut, cut.part_of(5)), head);
      EXPECT_EQ(part(cut, cut.part_of(5), 0, 1).front(), 2 * head);
    }
  }
  EXPECT_EQ(found, 2);
}

// 5 rows over 4 ranks: 2, 2, 1 and none, in room for 2.
TEST(TensorSlice, FillsRowsThatPadATableWithZeros) {
  LayerSpec layer;
  layer.parameters.push_back({"table", {5, 3}, TpSplit::vocab, 0});
  const TensorCut cut = tensor_cut(layer, 0, *find_engine("shardwise"), over(4));
  EXPECT_EQ(part(cut, 1, 0, 6), (std::vector<std::int64_t>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(part(cut, 2, 1, 5), (std::vector<std::int64_t>{13, 14, -1, -1, -1}));
  EXPECT_EQ(part(cut, 3, 0, 6), std::vector<std::int64_t>(6, -1));
  EXPECT_EQ(filled_part(cut, 1), 6);
  EXPECT_EQ(filled_part(cut, 2), 3);
  EXPECT_EQ(filled_part(cut, 3), 0);
}

}  // namespace
}  // namespace shardwise
