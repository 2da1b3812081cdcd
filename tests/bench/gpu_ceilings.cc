#include "tests/bench/gpu_ceilings.h"

#include <algorithm>
#include <array>
#include <span>

#include "executor/kernels/cuda/event_clock.h"
#include "executor/kernels/cuda/gemm_plans.h"
#include "planner/cost/kernels/gemm_workspace.h"
#include "planner/spec/json/json_writer.h"

namespace shardwise::exec {
namespace {

constexpr std::array<const char*, 4> kMoveNames = {"copy", "fill", "to_device", "to_host"};
constexpr std::array<const char*, 3> kProductNames = {"forward", "weight_gradient",
                                                      "narrow_gradient"};

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

MoveCeiling measure_move(CudaDevice& device, EventClock& clock, Move move, std::int64_t bytes) {
  const CudaCalls calls(0);
  const MemorySpace beside =
      move == Move::to_device || move == Move::to_host ? MemorySpace::pinned : MemorySpace::device;
  const DeviceMemory here = device.allocate(bytes, MemorySpace::device);
  const DeviceMemory there = device.allocate(move == Move::fill ? 1 : bytes, beside);
  clock.fill({here.at(), static_cast<std::size_t>(bytes)}, DType::fp32);
  const auto size = static_cast<std::size_t>(bytes);
  const auto issue = [&] {
    if (move == Move::fill) {
      calls.check(cudaMemsetAsync(here.at(), 1, size, clock.stream()), "cudaMemsetAsync");
      return;
    }
    const bool in = move == Move::to_device;
    const cudaMemcpyKind kind = in                      ? cudaMemcpyHostToDevice
                                : move == Move::to_host ? cudaMemcpyDeviceToHost
                                                        : cudaMemcpyDeviceToDevice;
    calls.check(cudaMemcpyAsync(in ? here.at() : there.at(), in ? there.at() : here.at(), size,
                                kind, clock.stream()),
                "cudaMemcpyAsync");
  };
  MoveCeiling made{move, bytes};
  made.seconds = clock.seconds(issue);
  made.gb_per_s =
      rate((move == Move::copy ? 2e-9 : 1e-9) * static_cast<double>(bytes), made.seconds);
  made.repeats = clock.repeats();
  return made;
}

/// \param at  an aligned address: operands get their own later
Product product_for(const ProductCeiling& p, std::byte* at) {
  const LinearShape shape = {p.rows, p.in, p.out, p.in, p.out, false};
  if (p.kind == ProductKind::forward) {
    return product_of(LinearWork{.shape = shape, .dtype = p.dtype, .x = at, .weight = at, .y = at},
                      false, p.tf32)
        .product;
  }
  const DType gradient = p.kind == ProductKind::narrow_gradient ? DType::bf16 : DType::fp32;
  return product_of(LinearBackwardWeightWork{.shape = shape,
                                             .dtype = p.dtype,
                                             .gradient = gradient,
                                             .x = at,
                                             .d_y = at,
                                             .d_weight = at},
                    nullptr, p.tf32)
      .product;
}

void measure_product(CudaDevice& device, EventClock& clock, GemmPlans& plans,
                     std::span<std::byte> workspace, double seconds_each, ProductCeiling& p) {
  const Product product = product_for(p, workspace.data());
  if (!plans.supports(product)) return;
  const std::int64_t bytes = GemmPlans::operand_bytes(product);
  if (bytes > device.facts().free_bytes) return;
  const DeviceMemory operands = device.allocate(bytes, MemorySpace::device);
  const ProductCall call = GemmPlans::laid_out(product, operands.at());
  clock.set_seconds_each(seconds_each / 20);  // each of the algorithms that are compared
  KernelTuning tuning = {.clock = clock, .workspace = workspace};
  plans.tune(call, tuning);
  if (!plans.supports(product)) return;
  clock.set_seconds_each(seconds_each);
  p.seconds = clock.seconds([&] { plans.run(call, workspace.data(), clock.stream()); });
  const double flops =
      2.0 * static_cast<double>(p.rows) * static_cast<double>(p.in) * static_cast<double>(p.out);
  p.tflops = rate(1e-12 * flops, p.seconds);
  p.repeats = clock.repeats();
}

/// What a launch takes, squares, and products of the models that scripts/gpu_check.sh compares.
std::vector<ProductCeiling> products_of(std::int64_t largest_rows) {
  struct Size {
    std::int64_t rows, in, out;
  };
  std::vector<ProductCeiling> made;
  const auto add = [&](ProductKind kind, DType dtype, bool tf32, const Size& size) {
    if (size.rows > largest_rows) return;
    made.push_back({kind, dtype, tf32, size.rows, size.in, size.out});
  };
  for (const Size& size :
       {Size{16, 64, 64}, Size{2048, 2048, 2048}, Size{4096, 4096, 4096}, Size{8192, 8192, 8192},
        Size{32768, 768, 3072},      // GPT-2 124M, 32 x 1024 tokens
        Size{16384, 1600, 6400},     // GPT-2 1.5B, 16 x 1024
        Size{16384, 2048, 16384},    // Llama-3.2-1B, gate and up, 2 x 8192
        Size{8192, 3072, 16384}}) {  // Llama-3.2-3B
    for (const ProductKind kind :
         {ProductKind::forward, ProductKind::weight_gradient, ProductKind::narrow_gradient}) {
      add(kind, DType::bf16, false, size);
    }
  }
  for (const bool tf32 : {false, true}) {
    for (const Size& size : {Size{1024, 1024, 1024}, Size{4096, 4096, 4096}}) {
      add(ProductKind::forward, DType::fp32, tf32, size);
    }
  }
  return made;
}

/// Of the models that are compared, in long sequences and in theirs; one small that runs anywhere.
std::vector<AttentionShape> attention_of(std::int64_t largest_sequence) {
  std::vector<AttentionShape> made;
  for (const AttentionShape& each :
       {AttentionShape{1, 32, 2, 1, 64}, AttentionShape{16, 1024, 12, 12, 64},
        AttentionShape{8, 1024, 25, 25, 64}, AttentionShape{2, 8192, 32, 8, 64},
        AttentionShape{1, 8192, 24, 8, 128}}) {
    if (each.sequence <= largest_sequence) made.push_back(each);
  }
  return made;
}

}  // namespace

GpuCeilings measure_ceilings(CudaDevice& device, const CublasLtLibrary& library, Compute& compute,
                             const CeilingOptions& options) {
  GpuCeilings made;
  made.facts = device.facts();
  made.cublaslt = library.describe();
  EventClock clock(device, options.seconds_each);
  constexpr std::int64_t kSmallest = std::int64_t{1} << 20;
  for (const Move move : {Move::copy, Move::fill}) {
    for (std::int64_t bytes = kSmallest; bytes <= options.largest_bytes; bytes *= 4) {
      made.moves.push_back(measure_move(device, clock, move, bytes));
    }
  }
  for (const Move move : {Move::to_device, Move::to_host}) {
    made.moves.push_back(
        measure_move(device, clock, move, std::min(options.largest_bytes, kSmallest * 256)));
  }
  const std::int64_t workspace_bytes = gemm_workspace_bytes(made.facts.capability);
  const DeviceMemory workspace = device.allocate(workspace_bytes, MemorySpace::device);
  GemmPlans plans(library, {0, workspace_bytes});
  const std::span<std::byte> given(workspace.at(), static_cast<std::size_t>(workspace_bytes));
  made.products = products_of(options.largest_rows);
  for (ProductCeiling& each : made.products) {
    measure_product(device, clock, plans, given, options.seconds_each, each);
  }
  clock.set_seconds_each(options.seconds_each);
  for (const AttentionShape& shape : attention_of(options.largest_sequence)) {
    made.attention.push_back(time_attention(device, clock, compute, shape));
  }
  return made;
}

std::string to_json(const GpuCeilings& ceilings) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.gpu_ceilings/1");
  json.member("gpu", ceilings.facts.name);
  json.member("capability", ceilings.facts.capability);
  json.member("total_bytes", ceilings.facts.total_bytes);
  json.member("free_bytes", ceilings.facts.free_bytes);
  json.member("driver_version", ceilings.facts.driver_version);
  json.member("runtime_version", ceilings.facts.runtime_version);
  json.member("cublaslt", ceilings.cublaslt);
  json.begin_array("moves");
  for (const MoveCeiling& each : ceilings.moves) {
    json.begin_object();
    json.member("move", kMoveNames[static_cast<std::size_t>(each.move)]);
    json.member("bytes", each.bytes);
    json.member("gb_per_s", each.gb_per_s);
    json.member("median_us", 1e6 * each.seconds);
    json.member("repeats", each.repeats);
    json.end_object();
  }
  json.end_array();
  json.begin_array("products");
  for (const ProductCeiling& each : ceilings.products) {
    json.begin_object();
    json.member("product", kProductNames[static_cast<std::size_t>(each.kind)]);
    json.member("dtype", each.tf32 ? "tf32" : name_of(each.dtype));
    json.member("rows", each.rows);
    json.member("in", each.in);
    json.member("out", each.out);
    json.member("tflops", each.tflops);
    json.member("median_us", 1e6 * each.seconds);
    json.member("repeats", each.repeats);
    json.end_object();
  }
  json.end_array();
  json.begin_array("attention");
  for (const AttentionTime& each : ceilings.attention) {
    const auto pass = [&](const char* name, double seconds, double tflops) {
      json.begin_object();
      json.member("pass", name);
      json.member("batch", each.shape.batch);
      json.member("sequence", each.shape.sequence);
      json.member("heads", each.shape.heads);
      json.member("kv_heads", each.shape.kv_heads);
      json.member("head_dim", each.shape.head_dim);
      json.member("tflops", tflops);
      json.member("median_us", 1e6 * seconds);
      json.end_object();
    };
    pass("forward", each.forward_seconds, each.forward_tflops);
    pass("backward", each.backward_seconds, each.backward_tflops);
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise::exec
