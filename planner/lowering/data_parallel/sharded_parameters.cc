#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/data_parallel/parameter_gathers.h"
#include "planner/lowering/data_parallel/unit_reductions.h"

namespace shardwise {
namespace {

class ShardedParameters : public DataParallelSchedule {
 public:
  ShardedParameters(const LoweringContext& context, std::int32_t stage, StageBuilder& builder)
      : units_(context, builder),
        order_(context.engine().all_gather_shares_communicator),
        slots_(context, stage, builder),
        gathers_(context, stage, builder, units_, order_, slots_),
        reductions_(context, stage, builder, units_, order_, slots_) {}

  void start() override {}
  void before(const LayerTurn& turn, OperationLists& lists) override {
    gathers_.before(turn, lists);
    reductions_.before(turn, lists);
  }
  void after(const LayerTurn& turn, OpId op) override {
    gathers_.after(turn, op);
    reductions_.after(turn, op);
  }
  void finish() override {
    late_buffers_ = reductions_.late_buffers();
    const std::vector<BufferId> parts = gathers_.late_buffers();
    late_buffers_.insert(late_buffers_.end(), parts.begin(), parts.end());
    slots_.finish();
  }
  void after_step(OpId) override {}

 private:
  UnitTable units_;
  CommunicatorOrder order_;
  ArenaSlots slots_;
  ParameterGathers gathers_;
  UnitReductions reductions_;
};

}  // namespace

std::unique_ptr<DataParallelSchedule> sharded_parameters(const LoweringContext& context,
                                                         std::int32_t stage,
                                                         StageBuilder& builder) {
  return std::make_unique<ShardedParameters>(context, stage, builder);
}

}  // namespace shardwise
