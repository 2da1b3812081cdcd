#include "tests/executor/grid/gpu_job.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <utility>

#include "executor/comm/loopback_world.h"
#include "executor/comm/thread_world.h"
#include "executor/device/cuda/cuda_device.h"
#include "executor/device/cuda/cuda_runner.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/comm/nccl/fake_job.h"
#include "tests/executor/support/stream_compute.h"
#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fake_nccl.h"

namespace shardwise::exec::test {
namespace {

constexpr double kTimeout = 60;  // s

/// A layer whose passes a stream of the fake runs, as if each were one kernel.
class StreamLayer : public Layer {
 public:
  explicit StreamLayer(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}
  LayerBytes bytes() const override { return layer_->bytes(); }
  void forward(const ForwardPass& pass, const Issue& to) const override {
    const std::vector<const std::byte*> weights(pass.weights.begin(), pass.weights.end());
    enqueue_host(to.stream, "forward", [this, pass, weights, &compute = to.compute] {
      ForwardPass own = pass;
      own.weights = weights;
      DeviceStream host;
      layer_->forward(own, {compute, host});
    });
  }
  void recompute(const BackwardPass& pass, const Issue& to) const override {
    backward(pass, to, &Layer::recompute);
  }
  void backward(const BackwardPass& pass, const Issue& to) const override {
    backward(pass, to, &Layer::backward);
  }

 private:
  using Pass = void (Layer::*)(const BackwardPass& pass, const Issue& to) const;
  void backward(const BackwardPass& pass, const Issue& to, Pass run) const {
    const std::vector<const std::byte*> weights(pass.weights.begin(), pass.weights.end());
    const std::vector<std::byte*> gradients(pass.gradients.begin(), pass.gradients.end());
    enqueue_host(to.stream, "backward",
                 [this, pass, weights, gradients, run, &compute = to.compute] {
                   BackwardPass own = pass;
                   own.weights = weights;
                   own.gradients = gradients;
                   DeviceStream host;
                   (layer_.get()->*run)(own, {compute, host});
                 });
  }

  std::unique_ptr<Layer> layer_;
};

/// A runner of which kernels may be defective.
class DefectRunner : public ProgramRunner {
 public:
  DefectRunner(std::unique_ptr<CudaRunner> runner, const std::deque<StageProgram>& programs,
               const Defect* defect)
      : runner_(std::move(runner)), programs_(programs), defect_(defect) {}
  void run(std::size_t program, const OpKernels& kernels, Spans spans) override {
    last_ = program;
    OpKernels own = kernels;
    if (defect_ != nullptr && defect_->kernels) defect_->kernels(programs_[program], own);
    runner_->run(program, own, spans);
  }
  std::span<const OpSpan> spans() const override { return runner_->spans(); }
  bool recording_takes_time() const override { return runner_->recording_takes_time(); }
  bool has_graph() const { return runner_->has_graph(last_); }

 private:
  std::unique_ptr<CudaRunner> runner_;
  const std::deque<StageProgram>& programs_;
  const Defect* defect_;
  std::size_t last_ = 0;
};

/// Why steps are no graph; empty where they are.
std::string no_graph_of(Steps steps) {
  return steps == Steps::graph || steps == Steps::as_trained ? "" : "not asked for";
}

/// A rank's GPU: its runner as the job asks.
class GridDevice : public CudaDevice {
 public:
  /// \param defect  of this rank, or null
  GridDevice(int rank, Steps steps, const Defect* defect, Options options)
      : CudaDevice(0, rank, std::move(options)), steps_(steps), defect_(defect) {}
  std::unique_ptr<ProgramRunner> runner(const std::vector<const StageProgram*>& programs, int rank,
                                        AbortSignal& abort) override {
    std::vector<const StageProgram*> given;
    for (const StageProgram* program : programs) {
      programs_.push_back(*program);
      if (defect_ != nullptr && defect_->program) defect_->program(programs_.back());
      given.push_back(&programs_.back());
    }
    auto own = std::make_unique<CudaRunner>(given, rank, abort, no_graph_of(steps_));
    auto made = std::make_unique<DefectRunner>(std::move(own), programs_, defect_);
    runner_ = made.get();
    return made;
  }
  /// \pre the runner lives
  bool has_graph() const { return runner_ != nullptr && runner_->has_graph(); }

 private:
  Steps steps_;
  const Defect* defect_;
  std::deque<StageProgram> programs_;
  DefectRunner* runner_ = nullptr;
};

CudaDevice::Options options_of(const GpuJob& job, const Defect* defect,
                               const NcclLibrary& library) {
  CudaDevice::Options options;
  options.no_graph = no_graph_of(job.steps);
  options.compute = [defect](CudaDevice&) -> std::unique_ptr<Compute> {
    if (defect != nullptr && defect->compute) return defect->compute();
    return std::make_unique<StreamCompute>();
  };
  if (job.moves == Moves::nccl) {
    options.world = [&library](CudaDevice&, World& control, Compute&, AbortSignal& abort) {
      return std::make_unique<NcclWorld>(library, 0, control, NcclPolicy(), 0, abort, kTimeout);
    };
  } else {
    options.world = [](CudaDevice& device, World& control, Compute& compute, AbortSignal&) {
      return std::make_unique<LoopbackWorld>(control, device, compute);
    };
  }
  return options;
}

/// Layers on streams.
LayerKernels on_streams(const LayerKernels& kernels) {
  return {[make = kernels.make](const LayerSpec& kind) -> std::unique_ptr<Layer> {
            return std::make_unique<StreamLayer>(make(kind));
          },
          kernels.fill_tables};
}

}  // namespace

Plan on_gpus(Plan plan) {
  // Kernels of this architecture have the smallest workspace, which the fake fills with zeros.
  plan.cluster = *with_gpus(*find_cluster("dgx-a100"), plan.layout.world());
  return plan;
}

GpuRun train_on_gpus(const Plan& plan, std::int64_t steps, const GpuJob& job,
                     const LayerKernels& kernels) {
  const auto ranks = static_cast<std::size_t>(plan.layout.world());
  fake_nccl::reset();
  fake_cuda::reset(job.seed);
  fake_cuda::set_hosts(static_cast<int>(ranks));
  const NcclLibrary library = fake_library();
  const TokenSequences data = laptop_text(plan);
  TrainOptions options;
  options.optimizer.peak_learning_rate = 0.01;
  options.records = job.steps == Steps::recorded || job.steps == Steps::as_trained;
  if (job.steps == Steps::as_trained) options.steps = steps;
  GpuRun run;
  run.arena_bytes.resize(ranks);
  std::atomic<std::size_t> graphs{0};
  {
    // Freed by one thread when all ranks have ended, which read one another's memory.
    std::vector<std::unique_ptr<GridDevice>> devices(ranks);
    std::vector<Arena> arenas(ranks);
    AbortSignal abort;
    const auto rank_main = [&](World& world) {
      const auto rank = static_cast<std::size_t>(world.rank());
      const bool has_it = job.defect.rank == world.rank() || job.defect.rank == Defect::kEveryRank;
      const Defect* const defect = has_it ? &job.defect : nullptr;
      devices[rank] = std::make_unique<GridDevice>(world.rank(), job.steps, defect,
                                                   options_of(job, defect, library));
      GridDevice& device = *devices[rank];
      Trainer trainer(plan, world, device, arenas[rank], abort, options,
                      job.layers_issue ? kernels : on_streams(kernels));
      trainer.initialise();
      for (std::int64_t s = 0; s < steps; ++s) {
        if (world.rank() == job.defect.rank && s == job.defect.step) {
          fake_cuda::forget_wait(job.defect.forgotten_wait);
        }
        const StepResult result = trainer.step(data);
        if (world.rank() == job.defect.rank && s == job.defect.step) {
          run.waits = fake_cuda::forget_wait(-1);
        }
        if (rank != 0) continue;
        run.curve.losses.push_back(result.loss);
        run.curve.norms.push_back(result.gradient_norm);
      }
      run.arena_bytes[rank] = arenas[rank].bytes();
      graphs += device.has_graph() ? 1U : 0U;
      const StepSpans& steady = trainer.median_step();
      if (rank != 0) return;
      const auto record_of = [&](const StepSpans& step) {
        return StepRecord{trainer.program(step.program), trainer.items(step.program), step.spans,
                          step.seconds};
      };
      run.record.first = record_of(trainer.first_step());
      run.record.steady = record_of(steady);
      run.record.unrecorded_s = trainer.unrecorded_seconds();
      run.at_once = std::max(arenas[rank].layout(0).live_bytes, arenas[rank].layout(1).live_bytes);
      const DeviceFacts facts = device.facts();
      run.device_bytes = facts.total_bytes - facts.free_bytes;
    };
    try {
      run_ranks(static_cast<int>(ranks), abort, rank_main, std::chrono::seconds(60));
    } catch (const std::exception& broken) {
      run.why = broken.what();
    }
  }
  run.graphs = graphs == ranks;
  run.complaints = fake_cuda::complaints();
  for (const std::string& line : fake_nccl::unfinished()) run.complaints.push_back(line);
  run.left_over = fake_cuda::left_over();
  if (fake_nccl::left_over() > 0) run.left_over += " communicators";
  return run;
}

}  // namespace shardwise::exec::test
