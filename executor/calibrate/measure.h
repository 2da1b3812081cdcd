#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/calibrate/stopwatch.h"
#include "executor/kernels/workers.h"
#include "planner/calibration/collective_fit.h"
#include "planner/calibration/measurements.h"

namespace shardwise::exec {

/// A kernel that moves bytes, as the planner counts them, and does something with them.
struct KindPoint {
  MoveKind kind = MoveKind::copy;
  Pass pass = Pass::forward;
  MovePoint point;
  DType dtype = DType::fp32;  // of weights and activations
};

/// Attention in one type.
struct TypedAttention {
  DType dtype = DType::fp32;
  AttentionPoint point;
};

/// One collective; all ranks are in groups of so many neighbours, which call it at once.
struct GroupPoint {
  CollectiveKind kind = CollectiveKind::all_gather;
  int ranks = 1;
  Bytes bytes;  // of the whole buffer
  Seconds time;
  DType dtype = DType::fp32;
};

/// Times of this machine, in fp32 and in bf16. Every rank has the same.
struct Measurements {
  std::vector<GemmPoint> products;
  std::vector<TypedAttention> attention;
  std::vector<MovePoint> copies;
  std::vector<KindPoint> kinds;
  std::vector<GroupPoint> collectives;
  Seconds operation;  // that does nothing, of a program of two streams that wait for one another
};

/// Says what is being timed, and for which part of the whole that is done.
using Told = std::function<void(const std::string& what, double done)>;

/// Times the executor's own kernels and collectives as a rank of `world` runs them. About a
/// minute. \param cores  that the ranks of this machine share \param told  called on every rank
Measurements measure(World& world, Workers& workers, int cores, const Told& told);

// Its parts. `done` of `told` is of the part. E: float or Bf16.
template <class E>
void measure_products(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to);
template <class E>
void measure_attention(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to);
template <class E>
void measure_moves(Stopwatch& watch, Workers& workers, const Told& told, Measurements& to);
void measure_collectives(World& world, Stopwatch& watch, const Told& told, Measurements& to);
void measure_operation(Stopwatch& watch, const Told& told, Measurements& to);

}  // namespace shardwise::exec
