#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/engines/engines.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

// [batch, sequence / tp, hidden] of each rank, one after the other, is the whole only where the
// batch is one sequence: else attention and feed-forward copy it as they begin and as they end.
TEST(LayerTime, OfPyTorchsTensorParallelismCopiesBatchesOfSeveralSequences) {
  Priced p;
  p.engine = *find_engine("fsdp2");
  p.layout.tp = 2;
  p.layout.sequence_parallel = true;
  p.job.sequence_length = 8192;
  const LayerTime one = p.layer("block");
  p.job.sequence_length = 4096;
  p.layout.micro_batch_size = 2;
  const LayerTime two = p.layer("block");
  const Bytes each(std::int64_t{2} * 8192 * p.model.hidden_size * 2);
  for (const auto& [pass, many, few] : {std::tuple(Pass::forward, two.forward, one.forward),
                                        std::tuple(Pass::backward, two.backward, one.backward)}) {
    const Seconds copy = memory_bound_time(p.cluster.gpu, each, MoveKind::copy, pass, DType::bf16);
    EXPECT_NEAR((many.memory_bound - few.memory_bound).value(), 4 * copy.value(), 1e-9);
    EXPECT_EQ(many.kernels, few.kernels + 4);
  }
}

}  // namespace
}  // namespace shardwise
