// Whether steps end on all ranks: the proof finds what is planted, and nothing in any plan that
// runs.
#include "planner/lowering/checks/check_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "planner/lowering/stage/stage_builder.h"
#include "tests/planner/lowering/run_programs.h"

namespace shardwise::test {
namespace {

using testing::HasSubstr;

/// Two ranks that shard.
Layout two_ranks() {
  Layout layout;
  layout.dp_shard = 2;
  return layout;
}

/// A rank's program by hand.
class Rank {
 public:
  Rank() : builder_(program_) {}
  OpId collective(Stream stream, std::initializer_list<OpId> waits = {}, std::int64_t bytes = 64,
                  GroupKind group = GroupKind::dp_shard_cp) {
    ProgramOp op;
    op.role = stream == Stream::all_gather ? OpRole::gather : OpRole::reduce;
    op.stream = stream;
    op.layer = next_layer_++;
    CollectiveWork work;
    work.group = group;
    work.bytes = bytes;
    op.cost = builder_.collective_cost(work);
    return builder_.add(op, waits);
  }
  OpId compute(std::initializer_list<OpId> waits) {
    ProgramOp op;
    op.layer = next_layer_++;
    op.cost = builder_.traffic_cost(1);
    return builder_.add(op, waits);
  }
  const StageProgram& program() const { return program_; }

 private:
  StageProgram program_;
  StageBuilder builder_;
  std::int32_t next_layer_ = 0;
};

std::string found(const Rank& first, const Rank& second, const RankQueues& queues = {}) {
  const std::vector<const StageProgram*> by_rank = {&first.program(), &second.program()};
  return check_ranks(by_rank, two_ranks(), queues);
}

TEST(CheckRanks, FindsCollectivesThatRanksIssueBehindOneAnother) {
  Rank first;
  first.collective(Stream::reduce_scatter, {first.collective(Stream::all_gather)});
  Rank second;
  second.collective(Stream::all_gather, {second.collective(Stream::reduce_scatter)});
  EXPECT_EQ(found(first, first), "");
  const std::string said = found(first, second);
  EXPECT_THAT(said, HasSubstr("each waits for the next, and the last for the first: "));
  for (const char* const name : {"gather.layer0 of rank 0", "reduce.layer1 of rank 0",
                                 "reduce.layer0 of rank 1", "gather.layer1 of rank 1"}) {
    EXPECT_THAT(said, HasSubstr(name));
  }
}

// Ranks issue in other orders, which streams of their own allow. Where streams share a queue of the
// hardware, what waits for the first collective is in front of the second.
TEST(CheckRanks, FindsWhatWaitsInAQueueThatStreamsShare) {
  Rank first;
  first.compute({first.collective(Stream::all_gather)});
  first.collective(Stream::reduce_scatter);
  Rank second;
  second.compute({second.collective(Stream::reduce_scatter)});
  second.collective(Stream::all_gather);
  EXPECT_EQ(found(first, second), "");
  EXPECT_EQ(found(first, second, {.hardware_queues = 8}), "");
  EXPECT_THAT(found(first, second, {.hardware_queues = 1}), HasSubstr("each waits for the next"));
}

TEST(CheckRanks, FindsACommunicatorThatTwoStreamsShare) {
  Rank first;
  first.collective(Stream::all_gather);
  first.collective(Stream::reduce_scatter);
  Rank second;
  second.collective(Stream::reduce_scatter);
  second.collective(Stream::all_gather);
  EXPECT_EQ(found(first, second), "");
  // The first of one rank then meets the first of the other, whatever they are: equal bytes here.
  EXPECT_EQ(found(first, second, {.shared_communicator = true}), "");
  Rank longer;
  longer.collective(Stream::all_gather, {}, 128);
  longer.collective(Stream::reduce_scatter);
  EXPECT_THAT(found(second, longer, {.shared_communicator = true}),
              HasSubstr("gather.layer0 of rank 1 meets reduce.layer0 of rank 0, which moves other "
                        "bytes"));
}

TEST(CheckRanks, NamesTheRankThatDoesNotCome) {
  Rank both;
  both.collective(Stream::all_gather);
  both.collective(Stream::all_gather);
  Rank one;
  one.collective(Stream::all_gather);
  EXPECT_EQ(found(both, one), "gather.layer1 of rank 0 waits for rank 1, which does not issue it");
  EXPECT_EQ(found(one, both), "gather.layer1 of rank 1 waits for rank 0, which does not issue it");
}

constexpr RankQueues kQueues[] = {{0, false}, {1, false}, {2, false},
                                  {8, false}, {1, true},  {8, true}};

/// \returns steps that were shown to end
int expect_to_end(const StepProgram& program, const Layout& layout, const std::string& what) {
  for (const RankQueues& queues : kQueues) {
    EXPECT_EQ(check_ranks(program, layout, queues), "")
        << what << ", " << queues.hardware_queues << " queues";
  }
  return std::size(kQueues);
}

// Every engine and way of data parallelism that shardwise-run takes, on 8 to 64 ranks.
TEST(CheckRanks, ShowsThatStepsOfEveryPlanThatRunsEnd) {
  int steps = 0;
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const int zero_stage : find_engine(name)->zero_stages) {
      for (const auto& [shard, replicate, outer] :
           {std::tuple{8, 1, false}, {4, 4, true}, {8, 8, false}, {64, 1, false}}) {
        for (const bool each : {true, false}) {
          for (const std::int32_t reshard : {1, 0}) {
            Layout layout;
            layout.zero_stage = static_cast<std::int8_t>(zero_stage);
            layout.dp_shard = shard;
            layout.dp_replicate = replicate;
            layout.outer_shards_optimizer = outer;
            layout.reduce_every_microbatch = each;
            layout.reshard_after_forward = reshard;
            const Plan plan = small_plan(*find_engine(name), layout, 2);
            if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) continue;
            for (const StepKind step : {StepKind::first, StepKind::steady}) {
              steps += expect_to_end(
                  run_program(plan, step, 0, false), layout,
                  fmt::format("{} ZeRO-{}, {} x {}", name, zero_stage, shard, replicate));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(steps, 800);
}

}  // namespace
}  // namespace shardwise::test
