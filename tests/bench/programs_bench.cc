// Whether a search can run step programs in place of its step-time model: how many programs the
// layouts of a space have, and how long a run takes beside the price of a layout today.
//   build/dev/bin/programs_bench
// Processor time. What is compared takes turns, so that other work on the machine meets both.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/lowering/lower.h"
#include "planner/model/hf_config.h"
#include "planner/schedule/pipeline_slots.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/engine.h"
#include "simulator/workload/prices.h"
#include "tests/bench/asks_all.h"
#include "tests/bench/drawn_layouts.h"
#include "tests/bench/program_columns.h"
#include "tests/bench/program_keys.h"

namespace shardwise::sim {
namespace {

constexpr std::uint64_t kSeed = 20261129;
constexpr std::int64_t kStagesOfFew = 2;      // few micro-batches are so many times the stages
constexpr std::int64_t kFewLayouts = 20'000;  // a space whose programs are all lowered
constexpr double kMicro = 1e6;

struct Question {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  EngineProfile engine;
  Breadth breadth;

  Question(const char* model_name, std::int64_t gpus, std::int64_t batch, std::int64_t sequence,
           const char* engine_name, Breadth wide = Breadth::full)
      : name(fmt::format("{} x {}, {}, {} space", model_name, format_count(gpus), engine_name,
                         wide == Breadth::full ? "complete" : "usual")),
        model(*load_model(model_name)),
        cluster(*with_gpus(*find_cluster("dgx-h100"), gpus)),
        engine(*find_engine(engine_name)),
        breadth(wide) {
    job.global_batch_size = batch;
    job.sequence_length = sequence;
  }
  Plan plan(const Layout& layout) const {
    Plan made;
    made.model = model;
    made.cluster = cluster;
    made.job = job;
    made.engine = engine;
    made.layout = layout;
    return made;
  }
};

std::int64_t microbatches(const Plan& plan) {
  return plan.job.microbatches(plan.layout.dp(), plan.layout.micro_batch_size);
}

std::int64_t few_of(const Plan& plan, std::int64_t least) {
  return few_microbatches(plan.layout, microbatches(plan), least);
}

/// The plan's program of so many micro-batches.
StepProgram lowered(Plan plan, std::int64_t number) {
  plan.job.global_batch_size = number * plan.layout.dp() * plan.layout.micro_batch_size;
  return lower_without_buffers(plan);
}

/// A program ready to run, with the prices of its plan.
struct Ready {
  StepProgram program;
  Prices prices;
  Workload work;

  Ready(const Plan& plan, std::int64_t number)
      : program(lowered(plan, number)),
        prices(prices_of(plan, program, Transport::usual)),
        work(representatives(program, prices)) {}
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  double length() const { return run_alone(work).length(); }
};

/// How layouts of a draw share their programs.
struct Sharing {
  std::int64_t layouts = 0;
  std::int64_t programs = 0;
  std::int64_t alone = 0;  // layouts whose program no other layout of the draw has

  explicit Sharing(const std::vector<std::uint64_t>& prints) {
    std::unordered_map<std::uint64_t, std::int64_t> times;
    for (const std::uint64_t print : prints) ++times[print];
    layouts = static_cast<std::int64_t>(prints.size());
    programs = static_cast<std::int64_t>(times.size());
    for (const auto& [print, number] : times) alone += number == 1 ? 1 : 0;
  }
  void say(const char* what) const {
    fmt::print("  {:<52} {:>7} of {} layouts, {} ({:.1f} %) share with none\n", what,
               format_count(programs), format_count(layouts), format_count(alone),
               100.0 * static_cast<double>(alone) / static_cast<double>(layouts));
  }
};

double mean(const std::vector<double>& all) {
  double sum = 0;
  for (const double each : all) sum += each;
  return sum / static_cast<double>(all.size());
}
double percentile(std::vector<double> all, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(all.size() - 1));
  std::ranges::nth_element(all, all.begin() + at);
  return all[static_cast<std::size_t>(at)];
}
void say(const char* what, const std::vector<double>& all, const char* form) {
  const auto text = [&](double value) { return fmt::format(fmt::runtime(form), value); };
  fmt::print("  {:<52} {:>10} {:>10} {:>10}\n", what, text(mean(all)), text(percentile(all, 0.5)),
             text(percentile(all, 0.9)));
}

/// Programs of layouts, by their fingerprints, and of the whole space, by keys that are equal for
/// layouts with one program.
void print_sharing(const Question& question, const std::vector<Layout>& layouts) {
  std::vector<std::uint64_t> programs;
  std::vector<std::uint64_t> with_costs;
  std::unordered_map<std::uint64_t, std::uint64_t> of_key;
  int differ = 0;
  const Watch watch;
  for (const Layout& layout : layouts) {
    const Plan plan = question.plan(layout);
    const std::int64_t few = few_of(plan, kStagesOfFew * layout.pp);
    const StepProgram program = lowered(plan, few);
    programs.push_back(fingerprint(program, false));
    with_costs.push_back(fingerprint(program, true));
    const std::uint64_t key = program_key(layout, question.engine, few);
    if (of_key.try_emplace(key, programs.back()).first->second != programs.back()) ++differ;
  }
  const double each = kMicro * watch.cpu() / static_cast<double>(layouts.size());
  Sharing(programs).say("programs without prices");
  Sharing(with_costs).say("the same, and which operations cost alike");
  fmt::print("  {:<52} {:>7} keys, {} layouts have another program than their key's first\n",
             "the same layouts by keys", format_count(static_cast<std::int64_t>(of_key.size())),
             differ);
  fmt::print("  {:<52} {:>7.0f} us\n", "to lower one program, the mean", each);
}

void print_keys(const Question& question, const EnumeratedSpace& space) {
  const SharedKeys all = shared_keys(space.items(), question.engine, kStagesOfFew);
  const auto share = [&](std::int64_t layouts) {
    return 100.0 * static_cast<double>(layouts) / static_cast<double>(all.layouts);
  };
  fmt::print(
      "  whole space: {} keys, {:.0f} layouts each; half of the layouts share with {} or more\n",
      format_count(all.keys), static_cast<double>(all.layouts) / static_cast<double>(all.keys),
      format_count(all.typical));
  fmt::print("  {:.3f} % share with none, {:.3f} % with fewer than 7\n", share(all.alone),
             share(all.below_8));
}

/// Programs of a draw, for runs.
struct Drawn {
  std::vector<std::unique_ptr<Ready>> ready;
  std::vector<ProgramColumns> columns;
  std::vector<std::vector<double>> prices;  // eight lanes
};

/// Lanes of one column, each a little dearer than the one before.
std::vector<double> lanes_of(const std::vector<double>& column) {
  constexpr std::size_t kLanes = 8;
  std::vector<double> lanes;
  for (const double price : column) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      lanes.push_back(price * (1 + 0.01 * static_cast<double>(l)));
    }
  }
  return lanes;
}

/// \pre the run of the columns is that of the engine
void check_length(const ProgramColumns& columns, const Ready& ready) {
  ProgramColumns::Room room;
  double length = 0;
  columns.run(price_column(ready.work).data(), 1, room, &length);
  const double whole = ready.length();
  SHARDWISE_CHECK(std::abs(length - whole) <= 1e-9 * whole, fmt::format("{} {}", length, whole));
}

Drawn drawn(const Question& question, const EnumeratedSpace& space, int count) {
  Drawn all;
  for (const Layout& layout : space.draw(count, kSeed)) {
    const Plan plan = question.plan(layout);
    all.ready.push_back(std::make_unique<Ready>(plan, few_of(plan, kStagesOfFew * layout.pp)));
    const Ready& ready = *all.ready.back();
    all.columns.emplace_back(ready.work);
    check_length(all.columns.back(), ready);
    all.prices.push_back(lanes_of(price_column(ready.work)));
  }
  return all;
}

void print_sizes(const Drawn& all) {
  std::vector<double> operations;
  std::vector<double> joined;
  std::vector<double> instructions;
  std::vector<double> prices;
  for (std::size_t i = 0; i < all.columns.size(); ++i) {
    operations.push_back(static_cast<double>(all.ready[i]->work.operations));
    joined.push_back(static_cast<double>(all.columns[i].operations()));
    instructions.push_back(static_cast<double>(all.columns[i].instructions()));
    prices.push_back(static_cast<double>(all.columns[i].prices()));
  }
  say("operations, layer by layer", operations, "{:.0f}");
  say("operations, passes as one and messages as one", joined, "{:.0f}");
  say("instructions of the run over columns", instructions, "{:.0f}");
  say("prices", prices, "{:.0f}");
}

/// Microseconds of a layout, each the mean of a draw; by round.
struct Times {
  std::vector<double> alone;
  std::array<std::vector<double>, 3> columns;  // of 1, 4 and 8 lanes
  std::vector<double> whole;
  std::vector<double> bytes;
};
constexpr std::array<int, 3> kLanes = {1, 4, 8};

double alone_time(const Drawn& all) {
  const Watch watch;
  for (const std::unique_ptr<Ready>& ready : all.ready) {
    benchmark::DoNotOptimize(run_alone(ready->work).end.data());
  }
  return kMicro * watch.cpu() / static_cast<double>(all.ready.size());
}

/// \param runs  of each program one after the other
double columns_time(const Drawn& all, int lanes, int runs) {
  ProgramColumns::Room room;
  std::array<double, 8> lengths{};
  const Watch watch;
  for (std::size_t i = 0; i < all.columns.size(); ++i) {
    for (int r = 0; r < runs; r += lanes) {
      all.columns[i].run(all.prices[i].data(), lanes, room, lengths.data());
      benchmark::DoNotOptimize(lengths.data());
    }
  }
  return kMicro * watch.cpu() / static_cast<double>(all.columns.size()) / runs;
}

/// Layouts priced one after the other as a search does, in items of the draw.
double today(const Question& question, const EnumeratedSpace& space, std::uint64_t round,
             bool times) {
  constexpr int kItems = 20;
  Evaluator evaluator(question.model, question.cluster, question.job, question.engine);
  AsksAll asks(0.05, times);
  for (const std::size_t item : space.draw_items(kItems, kSeed + round)) {
    asks.run(evaluator, space.items()[item]);
  }
  return kMicro / asks.rate.per_second();
}

void print_times(const Question& question, const EnumeratedSpace& space, const Drawn& all) {
  constexpr std::uint64_t kRounds = 7;
  Times times;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    times.whole.push_back(today(question, space, round, true));
    times.bytes.push_back(today(question, space, round, false));
    times.alone.push_back(alone_time(all));
    for (std::size_t k = 0; k < kLanes.size(); ++k) {
      times.columns[k].push_back(columns_time(all, kLanes[k], 16));
    }
  }
  const auto line = [](const char* what, const std::vector<double>& us) {
    fmt::print("  {:<52} {:>10.2f} ({:.2f} to {:.2f})\n", what, percentile(us, 0.5),
               std::ranges::min(us), std::ranges::max(us));
  };
  fmt::print("  us a layout, the median of {} rounds (least to most):\n", kRounds);
  line("today: bytes and step time", times.whole);
  line("today: bytes alone", times.bytes);
  line("run_alone, layer by layer", times.alone);
  line("columns, 1 layout at once", times.columns[0]);
  line("columns, 4 layouts at once", times.columns[1]);
  line("columns, 8 layouts at once", times.columns[2]);
  std::vector<double> ratio;
  for (std::size_t r = 0; r < kRounds; ++r) {
    ratio.push_back(times.columns[2][r] / (times.whole[r] - times.bytes[r]));
  }
  line("columns of 8 over today's step time", ratio);
}

/// Passes of layers and messages of a whole step, about.
std::int64_t operations_at_most(const Plan& plan) {
  const auto layers = static_cast<std::int64_t>(plan.model.layers.size());
  const std::int64_t chunks = std::int64_t{plan.layout.pp} * chunks_of_stage(plan.layout);
  return microbatches(plan) * (3 * layers + 4 * chunks);
}

/// Step from programs of few micro-batches, over the whole step, less 1.
void print_periods(const Question& question, const EnumeratedSpace& space, int count) {
  constexpr std::int64_t kMostOperations = 2'000'000;
  constexpr std::array<std::int64_t, 3> kStages = {1, 2, 4};
  std::array<std::vector<double>, kStages.size()> errors;
  std::array<std::vector<double>, kStages.size()> operations;
  int measured = 0;
  for (const Layout& layout : space.draw(count, kSeed)) {
    const Plan plan = question.plan(layout);
    const std::int64_t number = microbatches(plan);
    if (operations_at_most(plan) > kMostOperations) continue;
    const double whole = Ready(plan, number).length();
    const std::int64_t period = microbatches_a_period(layout);
    ++measured;
    for (std::size_t k = 0; k < kStages.size(); ++k) {
      const std::int64_t few = few_of(plan, kStages[k] * layout.pp + 2);
      if (few + period > number) continue;
      const Ready more(plan, few + period);
      const double least = Ready(plan, few).length();
      const double each = more.length() - least;
      const double all = least + each * static_cast<double>((number - few) / period);
      errors[k].push_back(100 * std::abs(all / whole - 1));
      operations[k].push_back(static_cast<double>(ProgramColumns(more.work).operations()));
    }
  }
  for (std::size_t k = 0; k < kStages.size(); ++k) {
    if (errors[k].empty()) continue;
    fmt::print("  {} pp + 2 micro-batches and a period more, % of {} of {} steps", kStages[k],
               errors[k].size(), measured);
    fmt::print(": median {:.1e}, 90 % {:.1e}, 98 % {:.1e}, most {:.1e}; {:.0f} operations\n",
               percentile(errors[k], 0.5), percentile(errors[k], 0.9), percentile(errors[k], 0.98),
               std::ranges::max(errors[k]), mean(operations[k]));
  }
}

void print_question(const Question& question) {
  const EnumeratedSpace space(question.model, question.cluster, question.job, question.engine,
                              question.breadth);
  fmt::print("{}, {} layouts\n", question.name, format_count(space.layouts()));
  print_sharing(question, space.draw(300, kSeed));
  const bool small = space.layouts() < kFewLayouts;
  print_sharing(question, small ? space.all() : space.draw(3000, kSeed));
  print_keys(question, space);
  const Drawn all = drawn(question, space, 300);
  fmt::print("  {:<52} {:>10} {:>10} {:>10}\n", "300 drawn layouts", "mean", "median", "90 %");
  print_sizes(all);
  print_times(question, space, all);
  print_periods(question, space, 60);
  fmt::print("\n");
  std::fflush(stdout);
}

void print_all() {
  double load = 0;
  getloadavg(&load, 1);
  fmt::print("load of the machine before: {:.1f}\n", load);
  print_question({"llama-3.1-405b", 16384, 2048, 8192, "megatron_ddp", Breadth::usual});
  print_question({"gpt3-175b", 4096, 1536, 2048, "megatron_ddp"});
  print_question({"llama-3.1-405b", 16384, 2048, 8192, "megatron_ddp"});
  print_question({"gpt3-175b", 4096, 1536, 2048, "megatron_fsdp"});
  print_question({"llama-3.1-405b", 16384, 2048, 8192, "megatron_fsdp"});
}

/// Programs of a few drawn layouts, range(0) layouts of each at once.
void run_columns(benchmark::State& state) {
  const Question question("gpt3-175b", 4096, 1536, 2048, "megatron_ddp", Breadth::usual);
  const EnumeratedSpace space(question.model, question.cluster, question.job, question.engine,
                              question.breadth);
  const Drawn all = drawn(question, space, 4);
  const auto lanes = static_cast<int>(state.range(0));
  for ([[maybe_unused]] const auto _ : state) columns_time(all, lanes, 8);
  state.SetItemsProcessed(state.iterations() * 8 * static_cast<std::int64_t>(all.columns.size()));
}
BENCHMARK(run_columns)->Arg(1)->Arg(4)->Arg(8)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardwise::sim

int main(int argc, char** argv) {
  // The figures take minutes: not for a run that only asks for a benchmark.
  if (argc == 1) shardwise::sim::print_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
