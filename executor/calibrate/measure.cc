#include "executor/calibrate/measure.h"

#include <array>
#include <cstdint>

#include "executor/comm/abort.h"
#include "executor/device/cpu/stream_runner.h"
#include "executor/kernels/element.h"

namespace shardwise::exec {
namespace {

constexpr double kLeastSeconds = 0.02;  // of a run of calls: several turns of a scheduler
constexpr std::uint32_t kOperations = 64;

/// A program of operations on two streams, each of which waits for the one before it.
StageProgram handing_over() {
  StageProgram program;
  for (std::uint32_t i = 0; i < kOperations; ++i) {
    ProgramOp op;
    op.stream = i % 2 == 0 ? Stream::compute : Stream::all_gather;
    if (i > 0) {
      op.waits.begin = static_cast<std::uint32_t>(program.indices.size());
      program.indices.push_back(i - 1);
      op.waits.end = static_cast<std::uint32_t>(program.indices.size());
    }
    program.operations.push_back(op);
  }
  return program;
}

}  // namespace

void measure_operation(Stopwatch& watch, const Told& told, Measurements& to) {
  told("an operation", 0);
  const StageProgram program = handing_over();
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  const OpKernels nothing(kOperations, [](DeviceStream& /*stream*/) {});
  to.operation =
      Seconds(watch.seconds([&] { runner.run(0, nothing, Spans::recorded); }) / kOperations);
}

Measurements measure(World& world, Workers& workers, int cores, const Told& told) {
  Measurements measured;
  Stopwatch watch(world, workers.threads(), cores, kLeastSeconds);
  // Where each part begins, of the whole: by how long they take.
  const auto part = [&](double begin, double end) -> Told {
    return [&told, begin, end](const std::string& what, double done) {
      told(what, begin + done * (end - begin));
    };
  };
  measure_products<float>(watch, workers, part(0, 0.28), measured);
  measure_products<Bf16>(watch, workers, part(0.28, 0.5), measured);
  measure_attention<float>(watch, workers, part(0.5, 0.57), measured);
  measure_attention<Bf16>(watch, workers, part(0.57, 0.64), measured);
  measure_moves<float>(watch, workers, part(0.64, 0.75), measured);
  measure_moves<Bf16>(watch, workers, part(0.75, 0.86), measured);
  measure_collectives(world, watch, part(0.86, 0.98), measured);
  measure_operation(watch, part(0.98, 1), measured);
  return measured;
}

}  // namespace shardwise::exec
